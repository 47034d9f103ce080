#include "tests/device_agent/planted_list.h"

#include "absl/strings/str_cat.h"

namespace regatta {
namespace {

Fault Same(const std::string& name, v1::Outcome outcome,
           const std::string& detail) {
  return {name, outcome, detail, outcome, detail};
}

// Stopped by a system call; harmless, though not stopped, with rlimits alone.
Fault Call(const std::string& name, const std::string& call) {
  return {name, v1::OUTCOME_SANDBOX_VIOLATION,
          absl::StrCat("SIGSYS: ", call, "(), in call 1"), v1::OUTCOME_OK, ""};
}

// By SIGKILL: without the filter nobody can tell whose it was.
Fault KillsItself(const std::string& name, const std::string& call) {
  Fault fault = Call(name, call);
  fault.poor_outcome = v1::OUTCOME_DEVICE_FAULT;
  fault.poor_detail = "killed from outside in the first call";
  return fault;
}

Fault NeedsUser(Fault fault) {
  fault.needs_user = true;
  return fault;
}

Fault TakesPath(Fault fault) {
  fault.takes_path = true;
  return fault;
}

std::vector<Fault> Good() {
  return {
      Same("honest", v1::OUTCOME_OK, ""),
      Same("threaded", v1::OUTCOME_OK, ""),
      Same("shout", v1::OUTCOME_OK, ""),
      Same("use_descriptors", v1::OUTCOME_OK, ""),
      // It is refused, and told so.
      TakesPath(NeedsUser(Same("read_file", v1::OUTCOME_OK, ""))),
  };
}

std::vector<Fault> Ends() {
  return {
      Same("crash", v1::OUTCOME_CRASHED, "SIGSEGV at address 0x10, in call 1"),
      Same("overflow_stack", v1::OUTCOME_CRASHED, "SIGSEGV at address 0x"),
      Same("smash_stack", v1::OUTCOME_CRASHED, "SIGSEGV"),
      Same("unmap", v1::OUTCOME_CRASHED, "SIGSEGV at address 0x"),
      Same("abort", v1::OUTCOME_CRASHED, "SIGABRT, in call 1"),
      Same("babble", v1::OUTCOME_CRASHED, "SIGABRT in call 1 ??"),
      Same("illegal_instruction", v1::OUTCOME_CRASHED, "SIGILL, in call 1"),
      Same("raise_fpe", v1::OUTCOME_CRASHED, "SIGFPE, in call 1"),
      Same("raise_term", v1::OUTCOME_CRASHED, "SIGTERM in the first call"),
      Same("alarm_later", v1::OUTCOME_CRASHED, "SIGALRM "),
      Same("exit", v1::OUTCOME_CRASHED,
           "ended the process with exit code 0 in the first call"),
      Same("exit_later", v1::OUTCOME_CRASHED,
           "ended the process with exit code 7 while being timed"),
      Same("exit_as_fault", v1::OUTCOME_CRASHED,
           "ended the process with exit code 113 in the first call"),
      Same("return_error", v1::OUTCOME_CRASHED,
           "call 1 returned 3 (a misaligned argument)"),
      Same("lie", v1::OUTCOME_CRASHED, "no sensible answer in the first call"),
      Same("close_channel", v1::OUTCOME_CRASHED,
           "broke its worker in the first call: "),
      Same("close_all", v1::OUTCOME_CRASHED,
           "broke its worker in the first call: it could not even say how"),
      Same("hang", v1::OUTCOME_TIMED_OUT, " s in the first call"),
      Same("hang_later", v1::OUTCOME_TIMED_OUT, " s while being timed"),
      Same("deaf", v1::OUTCOME_TIMED_OUT, " s in the first call"),
      Same("stop_self", v1::OUTCOME_TIMED_OUT, " s in the first call"),
      Same("alloc", v1::OUTCOME_OUT_OF_MEMORY, "needs more than the limit of "),
  };
}

std::vector<Fault> Writes() {
  return {
      Same("oob_write", v1::OUTCOME_CRASHED, "bytes past the end of output B"),
      Same("oob_near", v1::OUTCOME_WRONG_RESULT,
           "bytes after output B were overwritten"),
      Same("write_input", v1::OUTCOME_CRASHED,
           "in input A, which is read-only, in call 1"),
      Same("wrong", v1::OUTCOME_WRONG_RESULT, "output B element 777 of 1000"),
      Same("partial", v1::OUTCOME_WRONG_RESULT, "output B element 999 of 1000"),
      Same("wrong_later", v1::OUTCOME_WRONG_RESULT,
           "after timing: output B element 0 of 1000"),
  };
}

std::vector<Fault> Escapes() {
  Fault bomb = Call("forkbomb", "clone");
  bomb.poor_outcome = v1::OUTCOME_SANDBOX_VIOLATION;
  bomb.poor_detail = "more than 64 processes and threads";
  Fault outlive = Call("outlive", "prctl");
  outlive.poor_outcome = v1::OUTCOME_TIMED_OUT;
  outlive.poor_detail = " s in the first call";
  return {
      bomb,
      Same("thread_bomb", v1::OUTCOME_SANDBOX_VIOLATION,
           "more than 64 processes and threads"),
      // What it leaves behind is gone with its worker.
      Call("double_fork", "clone"),
      KillsItself("kill_self", "kill"),
      KillsItself("cpu_limit", "prlimit64"),
      KillsItself("kill_timer", "timer_create"),
      KillsItself("kill_by_io", "fcntl"),
      NeedsUser(Call("kill_others", "kill")),
      NeedsUser(Call("trace_others", "ptrace")),
      NeedsUser(Call("read_others", "process_vm_readv")),
      outlive,
      Call("move_away", "sched_setaffinity"),
      Call("open_socket", "socket"),
      TakesPath(Call("write_file", "openat")),
      TakesPath(Call("create_file", "openat")),
  };
}

}  // namespace

std::vector<Fault> PlantedFaults() {
  std::vector<Fault> all;
  for (const std::vector<Fault>& some : {Good(), Ends(), Writes(), Escapes()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

std::string PlantedSchedule(const Fault& fault, const std::string& path) {
  return absl::StrCat("planted{fault=", fault.name,
                      fault.takes_path ? ",path=" + path : "", "}");
}

}  // namespace regatta
