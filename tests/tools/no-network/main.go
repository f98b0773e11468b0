// Runs a program that is killed as soon as it opens a socket to anywhere but this machine's own files.
//
// A seccomp filter does it, which stays with the program and everything it starts. It needs neither root nor a network
// namespace, so it works in a plain container too; where the kernel refuses it, nothing is run.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"
)

const (
	setNoNewPrivileges = 38         // PR_SET_NO_NEW_PRIVS
	seccompModeFilter  = 2          // SECCOMP_MODE_FILTER
	allow              = 0x7fff0000 // SECCOMP_RET_ALLOW
	killProcess        = 0x80000000 // SECCOMP_RET_KILL_PROCESS

	// Where struct seccomp_data has the number of the system call, the processor, and the lower half of the first
	// argument, which is the family of addresses of a socket. Both processors have the lower half first.
	numberOffset       = 0
	architectureOffset = 4
	familyOffset       = 16
)

// What the kernel calls the processors (AUDIT_ARCH_*).
var architectures = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7}

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("name a program to run"))
	}
	program, err := exec.LookPath(os.Args[1])
	if err != nil {
		fail(err)
	}
	// The filter holds for this thread, which is the one that becomes the program.
	runtime.LockOSThread()
	if err := forbidSockets(); err != nil {
		fail(fmt.Errorf("the kernel takes no seccomp filter: %w", err))
	}
	fail(syscall.Exec(program, os.Args[1:], os.Environ()))
}

func forbidSockets() error {
	architecture, known := architectures[runtime.GOARCH]
	if !known {
		return fmt.Errorf("%s is not known here", runtime.GOARCH)
	}
	load := func(offset uint32) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_LD | syscall.BPF_W | syscall.BPF_ABS, K: offset}
	}
	// Passes over as many instructions as named where the value is, or is not, the one given.
	skip := func(value uint32, equal, different uint8) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, Jt: equal, Jf: different, K: value}
	}
	end := func(verdict uint32) syscall.SockFilter {
		return syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K, K: verdict}
	}
	filter := []syscall.SockFilter{
		load(architectureOffset),
		skip(architecture, 1, 0),
		end(killProcess),
		load(numberOffset),
		skip(syscall.SYS_SOCKET, 1, 0),
		end(allow),
		load(familyOffset),
		skip(syscall.AF_UNIX, 0, 1),
		end(allow),
		end(killProcess),
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := control(setNoNewPrivileges, 1, 0); err != nil {
		return err
	}
	return control(syscall.PR_SET_SECCOMP, seccompModeFilter, uintptr(unsafe.Pointer(&program)))
}

func control(what, first, second uintptr) error {
	if _, _, failure := syscall.RawSyscall6(syscall.SYS_PRCTL, what, first, second, 0, 0, 0); failure != 0 {
		return failure
	}
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "no-network:", err)
	os.Exit(125)
}
