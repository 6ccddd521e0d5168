package main

import (
	"fmt"
	"net"
	"os"
)

// sayReady tells the service manager that started this program, if it wants to know, that requests are answered from now on: so whatever
// it starts next, such as a command that an operator typed behind 'systemctl start', finds an installation. systemd's sd_notify(3) is the protocol.
func sayReady() error {
	const variable = "NOTIFY_SOCKET"
	at := os.Getenv(variable)
	if at == "" {
		return nil
	}
	if err := os.Unsetenv(variable); err != nil { // helpers that this program starts have nothing to say
		return err
	}
	conn, err := net.Dial("unixgram", at)
	if err != nil {
		return fmt.Errorf("telling the service manager at %s (%s) that the server is ready: %w", at, variable, err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("READY=1")); err != nil {
		return fmt.Errorf("telling the service manager at %s (%s) that the server is ready: %w", at, variable, err)
	}
	return nil
}
