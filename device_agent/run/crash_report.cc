#include "device_agent/run/crash_report.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <string>

#include "device_agent/sandbox/seccomp_filter.h"

namespace regatta {
namespace {

constexpr int kMaxBuffers = 32;
constexpr int kHexDigits = 16;

const GuardedMemory* g_buffers[kMaxBuffers];
std::atomic<int> g_buffer_count = 0;
std::atomic<long> g_call = 0;

// Text put together without the allocator, since a crash may have been in it.
class Line {
 public:
  Line& operator<<(const char* text) {
    while (*text != '\0' && size_ < sizeof(text_)) text_[size_++] = *text++;
    return *this;
  }
  Line& operator<<(long value) {
    char digits[24];
    char* at = digits + sizeof(digits) - 1;
    *at = '\0';
    do {
      *--at = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value > 0);
    return *this << at;
  }
  Line& Hex(uintptr_t value) {
    char digits[kHexDigits + 3];
    char* at = digits + sizeof(digits) - 1;
    *at = '\0';
    do {
      *--at = "0123456789abcdef"[value % 16];
      value /= 16;
    } while (value > 0);
    *--at = 'x';
    *--at = '0';
    return *this << at;
  }
  void Write() const {
    [[maybe_unused]] ssize_t written = write(STDERR_FILENO, text_, size_);
  }

 private:
  char text_[400];
  size_t size_ = 0;
};

void DescribeAddress(const char* address, Line* line) {
  line->Hex(reinterpret_cast<uintptr_t>(address));
  for (int i = 0; i < g_buffer_count.load(); ++i) {
    const GuardedMemory& buffer = *g_buffers[i];
    if (address < buffer.begin() || address >= buffer.end()) continue;
    const char* data_end = buffer.data() + buffer.bytes();
    if (address < buffer.data()) {
      *line << ", " << static_cast<long>(buffer.data() - address)
            << " bytes before the start of " << buffer.name().c_str();
    } else if (address >= data_end) {
      *line << ", " << static_cast<long>(address - data_end)
            << " bytes past the end of " << buffer.name().c_str();
    } else {
      *line << ", in " << buffer.name().c_str() << ", which is read-only";
    }
  }
}

void Handle(int signal_number, siginfo_t* info, void*) {
  Line line;
  line << "SIG" << sigabbrev_np(signal_number);
  switch (signal_number) {
    case SIGSEGV:
    case SIGBUS:
      // raise() and addresses that no page can have give none.
      if (info->si_code > 0 && info->si_code < SI_KERNEL) {
        line << " at address ";
        DescribeAddress(static_cast<const char*>(info->si_addr), &line);
      }
      break;
    case SIGSYS:
      line << ": " << SyscallName(info->si_syscall).c_str() << "()";
      break;
    default:
      break;
  }
  line << ", in call " << g_call.load() << "\n";
  line.Write();
  // The disposition is the default again; SA_NODEFER lets it through.
  raise(signal_number);
}

}  // namespace

void InstallCrashReports() {
  // A stack of its own, since overflowing the stack is a way to crash.
  static char stack[64 << 10];
  stack_t alternative = {};
  alternative.ss_sp = stack;
  alternative.ss_size = sizeof(stack);
  sigaltstack(&alternative, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = Handle;
  action.sa_flags =
      static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS}) {
    sigaction(number, &action, nullptr);
  }
}

void DescribeCrashesNear(const GuardedMemory* memory) {
  const int count = g_buffer_count.load();
  if (count == kMaxBuffers) return;
  g_buffers[count] = memory;
  g_buffer_count.store(count + 1);
}

void ForgetBuffers() { g_buffer_count.store(0); }

void NoteCall(long number) { g_call.store(number, std::memory_order_relaxed); }

}  // namespace regatta
