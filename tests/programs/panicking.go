// What Go's runtime does that no C library does: panics that are recovered from, raised by calls and by instructions that fault,
// goroutines whose stacks are copied as they grow, and that are interrupted wherever they are. With an argument for longer.
package main

import (
	"fmt"
	"os"
	"sync"
)

var above, below, both int

func faults(place *int) (result int, err error) {
	defer func() {
		if it := recover(); it != nil {
			err = fmt.Errorf("recovered: %v", it)
		}
	}()
	if place != nil {
		result = chooses(*place)
	}
	result += *place
	return
}

// What calls is jumped over, and what is not a call faults.
func misses(place *int) (result int) {
	defer func() { recover() }()
	if place != nil {
		result = chooses(*place)
	}
	if *place > 3 {
		above++
	} else {
		below++
	}
	both++
	return
}

// Defers in a loop are kept in a list, where others are bits.
func defers(count int) (said string) {
	for i := 0; i < count; i++ {
		defer func(i int) { said += fmt.Sprint(i) }(i)
	}
	if count == 3 {
		panic("three")
	}
	return "x"
}

func recovers(count int) (said string) {
	defer func() {
		if it := recover(); it != nil {
			said = fmt.Sprint(it)
		}
	}()
	said = defers(count)
	return said + "!"
}

func chooses(number int) int {
	switch number % 9 {
	case 0:
		return 1
	case 1:
		return 20
	case 2:
		return 300
	case 3:
		return number * 7
	case 4:
		return number + 9
	case 5:
		return -number
	case 6:
		return number / 3
	case 7:
		return number << 2
	}
	return 0
}

func descends(depth int) int {
	var room [64]int
	room[depth%64] = depth
	if depth == 0 {
		return room[0]
	}
	return descends(depth-1) + room[depth%64]
}

// Nothing in it gives way to others.
func spins(times int) (odd int) {
	for i := 0; i < times; i++ {
		odd ^= i
	}
	return odd
}

func never(number int) int {
	if number > 3 {
		return descends(number)
	}
	return spins(number)
}

func main() {
	number, times := 4, 1000
	if len(os.Args) > 1 {
		times = 200000000
	}
	fmt.Println(faults(&number))
	fmt.Println(faults(nil))
	fmt.Println(misses(nil), above, below, both)
	fmt.Println(recovers(2), recovers(3))
	var group sync.WaitGroup
	sums := make(chan int)
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			sums <- descends(300+i) + spins(times)
		}(i)
	}
	go func() {
		group.Wait()
		close(sums)
	}()
	sum := 0
	for one := range sums {
		sum += one
	}
	fmt.Println(sum)
	for i := 0; i < 8; i++ {
		fmt.Print(chooses(i), " ")
	}
	if len(os.Args) > 7 {
		fmt.Println(never(len(os.Args)))
	}
	os.Exit(5)
}
