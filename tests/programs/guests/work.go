// SPDX-License-Identifier: MIT
//
// Go guest: goroutines that grow their stacks, channels, select, garbage collection under load, a
// nil dereference that is recovered (SIGSEGV), preemption of tight loops (SIGURG), a final panic.
package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

type node struct {
	left, right *node
	value       int
}

func grow(depth int) *node {
	if depth == 0 {
		return &node{value: 1}
	}
	return &node{left: grow(depth - 1), right: grow(depth - 1), value: depth}
}

func (n *node) sum() int {
	if n == nil {
		return 0
	}
	return n.value + n.left.sum() + n.right.sum()
}

func deep(n int) int {
	var pad [64]int
	pad[n%64] = n
	if n == 0 {
		return 0
	}
	return deep(n-1) + pad[n%64] - n + 1
}

func recovered(step func()) (text string) {
	defer func() { text = fmt.Sprint(recover()) }()
	step()
	return "no panic"
}

func workers() {
	jobs, results := make(chan int), make(chan int, 16)
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for job := range jobs {
				results <- grow(job%8).sum() + deep(job%500)
			}
		}()
	}
	go func() {
		for i := 0; i < 400; i++ {
			jobs <- i
		}
		close(jobs)
		group.Wait()
		close(results)
	}()
	total := 0
	for result := range results {
		total += result
	}
	fmt.Println("workers", total)
}

func preempted() {
	var stop, spins int64
	done := make(chan bool)
	for i := 0; i < 4; i++ {
		go func() {
			local := int64(0)
			for atomic.LoadInt64(&stop) == 0 {
				local++
			}
			atomic.AddInt64(&spins, local)
			done <- true
		}()
	}
	runtime.GC()
	atomic.StoreInt64(&stop, 1)
	for i := 0; i < 4; i++ {
		<-done
	}
	fmt.Println("preempted")
}

func signals() {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGUSR1)
	for i := 0; i < 5; i++ {
		syscall.Kill(syscall.Getpid(), syscall.SIGUSR1)
		fmt.Println("signal", <-caught)
	}
	select {
	case <-caught:
		fmt.Println("unexpected signal")
	case <-time.After(10 * time.Millisecond):
		fmt.Println("timeout")
	}
}

func main() {
	runtime.GOMAXPROCS(4)
	workers()
	preempted()
	signals()
	var none *node
	fmt.Println(recovered(func() { none.value++ }))
	fmt.Println(recovered(func() { _ = []int{1}[len(os.Args)+4] }))
	zero := len(os.Args) - 1
	fmt.Println(recovered(func() { fmt.Println(1 / zero) }))
	fmt.Println("deep", deep(100000))
	words := strings.Fields(strings.Repeat("the quick brown fox ", 1000))
	sort.Strings(words)
	fmt.Printf("%x\n", sha256.Sum256([]byte(strings.Join(words, ","))))
	out, err := exec.Command("echo", "from a child").Output()
	fmt.Printf("%q %v\n", out, err)
	defer fmt.Println("deferred")
	panic("the end")
}
