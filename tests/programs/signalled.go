// Signals that come to the first thread, which C's linker and library have begun.
package main

import "C"

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func init() { runtime.LockOSThread() }

func main() {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGUSR1)
	for i := 0; i < 20; i++ {
		syscall.Tgkill(os.Getpid(), os.Getpid(), syscall.SIGUSR1)
		<-heard
	}
	fmt.Println("heard")
	os.Exit(3)
}
