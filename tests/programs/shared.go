// A library in Go, as C loads it.
package main

import "C"

import (
	"sync"
	"syscall"
)

//export steps
func steps(number C.int) (sum C.int) {
	defer func() { recover() }()
	// As the runtime interrupts what runs for long.
	syscall.Tgkill(syscall.Getpid(), syscall.Gettid(), syscall.SIGURG)
	var group sync.WaitGroup
	var lock sync.Mutex
	for i := 0; i < 3; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			lock.Lock()
			sum += C.int(i) * number
			lock.Unlock()
		}(i)
	}
	group.Wait()
	if number == 7 {
		var nothing *C.int
		sum += *nothing
	}
	return
}

func main() {}
