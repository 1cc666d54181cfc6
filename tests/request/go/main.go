// SPDX-License-Identifier: MIT

// Requests as Go's own runtime makes them: in its assembler, from many goroutines, while
// stacks move and threads are preempted by signals.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

func request(otherwise uint64, args *[6]uint64) uint64

func work(group *sync.WaitGroup, expected uint64, wrong *int64) {
	defer group.Done()
	for i := 0; i < 200; i++ {
		args := [6]uint64{0x1001}
		if request(0, &args) != expected {
			atomic.AddInt64(wrong, 1)
		}
		if i%100 == 0 {
			runtime.GC()
		}
	}
}

func main() {
	var group sync.WaitGroup
	var wrong int64
	expected := uint64(len(os.Args) - 1)
	for i := 0; i < 20; i++ {
		group.Add(1)
		go work(&group, expected, &wrong)
	}
	group.Wait()
	if wrong != 0 {
		fmt.Println("FAIL", wrong)
	}
	fmt.Println("done")
}
