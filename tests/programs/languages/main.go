// Goroutines that grow their stacks, are preempted in loops without calls, fault and recover; garbage; C's resolver of
// names, by which the program is linked dynamically.
package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/user"
	"regexp"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func deep(n int) int {
	var a [100]int
	if n == 0 {
		return 0
	}
	a[n%100] = n
	return deep(n-1) + a[n%100]
}

func main() {
	u, err := user.Current()
	fmt.Println(u != nil, err)
	_, err = net.LookupHost("localhost")
	fmt.Println(err)
	var wg sync.WaitGroup
	var mu sync.Mutex
	sum := 0
	for i := 0; i < 200; i++ {
		wg.Add(1)
		go func(i int) {
			defer wg.Done()
			x := fib(15) + deep(2000+i)
			runtime.Gosched()
			mu.Lock()
			sum += x
			mu.Unlock()
		}(i)
	}
	wg.Wait()
	fmt.Println(sum)
	func() {
		defer func() { fmt.Println("recovered", recover()) }()
		var p *int
		*p = 3
	}()
	b, _ := json.Marshal(map[string]any{"a": 1, "b": []int{1, 2}})
	fmt.Println(string(b))
	w := strings.Fields("the quick brown fox")
	sort.Strings(w)
	fmt.Println(w, regexp.MustCompile(`q.*k`).FindString("the quick"))
	done := make(chan int)
	go func() {
		for i := 0; ; i++ {
			if i%1000000 == 0 {
				select {
				case <-done:
					return
				default:
				}
			}
		}
	}()
	time.Sleep(20 * time.Millisecond)
	close(done)
	runtime.GC()
	os.Exit(3)
}
