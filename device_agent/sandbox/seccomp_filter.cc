#include "device_agent/sandbox/seccomp_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

// Names, since some exist on some architectures or kernels only.
constexpr const char* kMachine[] = {
    // other code into the kernel or in place of it
    "kexec_load", "kexec_file_load", "init_module", "finit_module",
    "delete_module", "bpf", "reboot",
    // other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd",
    "process_madvise", "kcmp",
    // the file system's shape
    "mount", "umount2", "pivot_root", "chroot", "move_mount", "fsopen",
    "fsconfig", "fsmount", "fspick", "open_tree", "mount_setattr", "swapon",
    "swapoff", "quotactl", "quotactl_fd", "open_by_handle_at",
    "name_to_handle_at", "mknod", "mknodat",
    // new privileges and namespaces
    "setns", "unshare", "keyctl", "add_key", "request_key",
    // the machine's settings
    "acct", "settimeofday", "clock_settime", "adjtimex", "clock_adjtime",
    "sethostname", "setdomainname", "iopl", "ioperm", "syslog", "nfsservctl",
    "lookup_dcookie", "vhangup",
    // interfaces that are large and that no kernel of ours needs
    "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter",
    "io_uring_register", "fanotify_init", "fanotify_mark",
    // network
    "socket", "connect", "bind", "listen", "accept", "accept4"};

constexpr const char* kCandidate[] = {"fork",
                                      "vfork",
                                      "execve",
                                      "execveat",
                                      "creat",
                                      "link",
                                      "linkat",
                                      "symlink",
                                      "symlinkat",
                                      "unlink",
                                      "unlinkat",
                                      "rename",
                                      "renameat",
                                      "renameat2",
                                      "mkdir",
                                      "mkdirat",
                                      "rmdir",
                                      "truncate",
                                      "chmod",
                                      "fchmod",
                                      "fchmodat",
                                      "chown",
                                      "fchown",
                                      "fchownat",
                                      "lchown",
                                      "setxattr",
                                      "lsetxattr",
                                      "fsetxattr",
                                      "removexattr",
                                      "inotify_init1",
                                      "pidfd_open",
                                      "pidfd_send_signal",
                                      "rt_sigqueueinfo",
                                      "rt_tgsigqueueinfo",
                                      "socketpair",
                                      "shmget",
                                      "msgget",
                                      "semget",
                                      "mq_open",
                                      "setrlimit",
                                      "timer_create",
                                      "sched_setscheduler",
                                      "sched_setaffinity",
                                      "sched_setattr",
                                      "setpriority",
                                      "sched_setparam"};

class Filter {
 public:
  explicit Filter(uint32_t action)
      : context_(seccomp_init(SCMP_ACT_ALLOW)), action_(action) {}
  ~Filter() { seccomp_release(context_); }

  void Deny(const char* name) { Deny(name, action_); }
  void Deny(const char* name, uint32_t action) {
    const int number = seccomp_syscall_resolve_name(name);
    // Not on this architecture: nothing to deny.
    if (number == __NR_SCMP_ERROR || number < 0) return;
    Note(name, seccomp_rule_add(context_, action, number, 0));
  }
  void DenyWhen(const char* name, scmp_arg_cmp condition) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR || number < 0) return;
    Note(name, seccomp_rule_add(context_, action_, number, 1, condition));
  }
  absl::Status Load() {
    if (error_.empty()) Note("loading the filter", seccomp_load(context_));
    if (error_.empty()) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("seccomp: ", error_));
  }

 private:
  void Note(const char* what, int result) {
    if (result != 0 && error_.empty()) {
      error_ = absl::StrCat(what, ": ", strerror(-result));
    }
  }

  scmp_filter_ctx context_;
  uint32_t action_;
  std::string error_;
};

// What makes the kernel send signals of the caller's choice, SIGKILL among
// them, or to processes of its choice. (timer_create is in the list above.)
void DenySignalsOfTheKernel(Filter* filter) {
  // At a hard limit of processor time. Reading limits is allowed.
  filter->DenyWhen("prlimit64", SCMP_A2_64(SCMP_CMP_NE, 0));
  // When a descriptor becomes ready.
  for (uint32_t command : {F_SETOWN, F_SETOWN_EX, F_SETSIG}) {
    filter->DenyWhen("fcntl", SCMP_A1_32(SCMP_CMP_EQ, command));
  }
  for (uint32_t request : {FIOSETOWN, SIOCSPGRP}) {
    filter->DenyWhen("ioctl", SCMP_A1_32(SCMP_CMP_EQ, request));
  }
}

}  // namespace

bool SeccompAvailable() {
  const uint32_t action = SECCOMP_RET_TRAP;
  return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

absl::Status InstallWorkerFilter() {
  Filter filter(SCMP_ACT_ERRNO(EPERM));
  for (const char* name : kMachine) filter.Deny(name);
  return filter.Load();
}

absl::Status InstallCandidateFilter() {
  Filter filter(SCMP_ACT_TRAP);
  for (const char* name : kMachine) filter.Deny(name);
  for (const char* name : kCandidate) filter.Deny(name);
  // A filter cannot look into clone3's memory; the C library falls back to
  // clone, where threads can be told from processes.
  filter.Deny("clone3", SCMP_ACT_ERRNO(ENOSYS));
  filter.DenyWhen("clone", SCMP_A0_32(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  const auto self = static_cast<uint32_t>(getpid());
  for (const char* name : {"kill", "tgkill"}) {
    filter.DenyWhen(name, scmp_arg_cmp{0, SCMP_CMP_NE, self, 0});
  }
  // Nobody could tell it from the host's (out of memory, an operator).
  filter.DenyWhen("kill", SCMP_A1_32(SCMP_CMP_EQ, SIGKILL));
  filter.DenyWhen("tgkill", SCMP_A2_32(SCMP_CMP_EQ, SIGKILL));
  filter.Deny("tkill");
  DenySignalsOfTheKernel(&filter);
  // Or it would outlive a spawner that is killed.
  filter.DenyWhen("prctl", SCMP_A0_32(SCMP_CMP_EQ, PR_SET_PDEATHSIG));
  // O_CREAT and O_TRUNC change files that are opened for reading too.
  for (const auto& [mask, value] :
       std::initializer_list<std::pair<uint32_t, uint32_t>>{
           {O_ACCMODE, O_WRONLY},
           {O_ACCMODE, O_RDWR},
           {O_CREAT, O_CREAT},
           {O_TRUNC, O_TRUNC}}) {
    filter.DenyWhen("open", SCMP_A1_32(SCMP_CMP_MASKED_EQ, mask, value));
    filter.DenyWhen("openat", SCMP_A2_32(SCMP_CMP_MASKED_EQ, mask, value));
  }
  filter.Deny("openat2", SCMP_ACT_ERRNO(ENOSYS));
  return filter.Load();
}

std::string SyscallName(int number) {
  char* name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  if (name == nullptr) return absl::StrCat("system call ", number);
  std::string text = name;
  free(name);
  return text;
}

}  // namespace regatta
