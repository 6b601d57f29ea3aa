// SPDX-License-Identifier: Apache-2.0

package responder

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Args returns the command line arguments with which [Main] runs with these options. Main creates readyFile when all
// ports are open.
func (o Options) Args(readyFile string) []string {
	return []string{"-name", o.Name, "-tcp", (*ports)(&o.TCP).String(), "-udp", (*ports)(&o.UDP).String(), "-ready-file",
		readyFile}
}

// Main runs the responder with the options in the command line arguments: -name NAME -tcp PORT,... -udp PORT,...
// -ready-file FILE.
func Main(ctx context.Context, args []string) error {
	options, err := parse(args)
	if err != nil {
		return err
	}
	return Run(ctx, options)
}

func parse(args []string) (Options, error) {
	var o Options
	flags := flag.NewFlagSet("responder", flag.ContinueOnError)
	flags.StringVar(&o.Name, "name", "", "what every answer begins with")
	flags.Var((*ports)(&o.TCP), "tcp", "TCP `ports`, separated by commas")
	flags.Var((*ports)(&o.UDP), "udp", "UDP `ports`, separated by commas")
	readyFile := flags.String("ready-file", "", "`file` to create when all ports are open")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("responder: arguments %q: want flags only", flags.Args())
	}
	if *readyFile != "" {
		o.Listening = func(_, _ []uint16) error { return os.WriteFile(*readyFile, nil, 0o644) }
	}
	return o, nil
}

type ports []uint16

func (p *ports) String() string {
	texts := make([]string, len(*p))
	for i, port := range *p {
		texts[i] = strconv.Itoa(int(port))
	}
	return strings.Join(texts, ",")
}

func (p *ports) Set(text string) error {
	for field := range strings.SplitSeq(text, ",") {
		if field == "" {
			continue
		}
		port, err := strconv.ParseUint(field, 10, 16)
		if err != nil {
			return fmt.Errorf("port %q: want 0 to 65535", field)
		}
		*p = append(*p, uint16(port))
	}
	return nil
}
