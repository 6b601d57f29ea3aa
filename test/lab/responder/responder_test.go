// SPDX-License-Identifier: Apache-2.0

package responder

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovnkube-slb/ovnkube-slb/test/await"
)

func run(t *testing.T) (tcp, udp uint16) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	up, ended := make(chan [2]uint16, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Name: "web-1", TCP: []uint16{0}, UDP: []uint16{0},
			Listening: func(tcp, udp []uint16) error {
				up <- [2]uint16{tcp[0], udp[0]}
				return nil
			}})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case ports := <-up:
		return ports[0], ports[1]
	case err := <-ended:
		ended <- nil
		t.Fatal(err)
		return 0, 0
	}
}

func hosts() []string { return []string{"127.0.0.1", "127.0.0.9", "::1"} }

func dial(t *testing.T, network, host string, port uint16) net.Conn {
	t.Helper()
	conn, err := net.Dial(network, net.JoinHostPort(host, fmt.Sprint(port)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(await.Limit)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestLinesAreAnsweredOnOneConnection(t *testing.T) {
	tcp, _ := run(t)
	for _, host := range hosts() {
		conn := dial(t, "tcp", host, tcp)
		answers := bufio.NewReader(conn)
		for i := range 3 {
			fmt.Fprintf(conn, "line %d\n", i)
			got, err := answers.ReadString('\n')
			want := fmt.Sprintf("web-1 %s line %d\n", conn.LocalAddr(), i)
			if err != nil || got != want {
				t.Errorf("%s: got %q, %v, want %q", host, got, err, want)
			}
		}
	}
}

func TestHTTPOnTheSamePort(t *testing.T) {
	tcp, _ := run(t)
	for _, host := range hosts() {
		var local string
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
			if err == nil {
				local = conn.LocalAddr().String()
			}
			return conn, err
		}
		client := http.Client{Transport: &http.Transport{DialContext: dial}}
		// Both on one connection, as the client port would differ otherwise.
		for _, body := range []string{"", "some words"} {
			response, err := client.Post("http://"+net.JoinHostPort(host, fmt.Sprint(tcp))+"/path", "text/plain",
				strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(response.Body)
			response.Body.Close()
			if want := "pod=web-1 client=" + local + "\n"; err != nil || string(got) != want {
				t.Errorf("%s: got %q, %v, want %q", host, got, err, want)
			}
		}
		client.CloseIdleConnections()
	}
}

// A connected UDP socket accepts responses only from the address to which it sent. 127.0.0.9 responds as 127.0.0.9.
func TestDatagramsAreAnsweredFromTheirDestination(t *testing.T) {
	_, udp := run(t)
	for _, host := range hosts() {
		conn := dial(t, "udp", host, udp)
		fmt.Fprint(conn, "ping 7")
		buffer := make([]byte, 100)
		n, err := conn.Read(buffer)
		if want := fmt.Sprintf("web-1 %s ping 7", conn.LocalAddr()); err != nil || string(buffer[:n]) != want {
			t.Errorf("%s: got %q, %v, want %q", host, buffer[:n], err, want)
		}
	}
}

func TestArgsAreParsedBack(t *testing.T) {
	for _, want := range []Options{
		{Name: "web-1", TCP: []uint16{80, 8080}, UDP: []uint16{53}},
		{Name: "none"},
	} {
		got, err := parse(want.Args("ready"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Options{}, "Listening")); diff != "" {
			t.Error(diff)
		}
	}
	if _, err := parse([]string{"-tcp", "70000"}); err == nil || !strings.Contains(err.Error(), "70000") {
		t.Errorf("port 70000: error = %v", err)
	}
}
