// A worker that does as it is told, for tests of the spawner:
//   misbehaving_worker ACTION [ARGUMENT]
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

void Hang() {
  for (;;) pause();
}

// Touches memory until something ends it.
void Grow() {
  constexpr size_t kStep = 4 << 20;
  for (;;) {
    void* memory = mmap(nullptr, kStep, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) Hang();
    memset(memory, 1, kStep);
  }
}

// Leaves a process behind that left the session and the group.
void Escape() {
  if (fork() == 0) {
    setsid();
    if (fork() == 0) Hang();
    _exit(0);
  }
  wait(nullptr);
}

void ForkBomb() {
  for (;;) {
    if (fork() < 0) usleep(1000);
  }
}

int TryAll() {
  // Every line says what a sandbox must refuse and whether it did.
  const auto say = [](const char* what, bool refused) {
    dprintf(2, "%s=%s\n", what, refused ? "refused" : "done");
  };
  say("root", geteuid() != 0);
  say("socket", socket(AF_INET, SOCK_STREAM, 0) < 0);
  say("write",
      open("/var/tmp/regatta-sandbox-test", O_WRONLY | O_CREAT, 0644) < 0);
  const int passwords = open("/root", O_RDONLY | O_DIRECTORY);
  say("home", passwords < 0);
  say("signal", kill(getppid(), 0) < 0);
  say("privileges", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
  say("agent_variable", getenv("REGATTA_TEST_SECRET") == nullptr);
  return 0;
}

// Writes so many MiB below HOME and says how many went, where, and what the
// variable EXTRA is.
int FillScratch(int mebibytes) {
  const char* home = getenv("HOME");
  const std::string path = std::string(home) + "/file";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT, 0600);
  const std::string block(1 << 20, 'x');
  int written = 0;
  while (written < mebibytes &&
         write(file, block.data(), block.size()) == 1 << 20) {
    ++written;
  }
  const char* extra = getenv("EXTRA");
  dprintf(2, "%s %d %s\n", home, written, extra == nullptr ? "-" : extra);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string action = argc > 1 ? argv[1] : "";
  if (action == "exit") return atoi(argv[2]);
  if (action == "hang") Hang();
  if (action == "spin") {
    for (volatile int i = 0;; i = i + 1) {
    }
  }
  if (action == "grow") Grow();
  if (action == "segv") raise(SIGSEGV);
  if (action == "bytes") {
    dprintf(2, "\xff\xed\xa0\x80 \xe2\x82\xac \xc3\n");
    raise(SIGSEGV);
  }
  if (action == "accents") {
    for (int i = 0; i < 3000; ++i) dprintf(2, "\xc3\xa9");
    dprintf(2, "\n");
  }
  if (action == "escape") Escape();
  if (action == "escape_and_hang") {
    Escape();
    Hang();
  }
  if (action == "bomb") ForkBomb();
  if (action == "try") return TryAll();
  if (action == "scratch") return FillScratch(atoi(argv[2]));
  if (action == "flood") {
    for (int i = 0; i < 100'000; ++i) dprintf(2, "line %d\n", i);
    dprintf(2, "the end\n");
  }
  if (action == "echo") {
    char byte;
    while (read(3, &byte, 1) == 1) {
      if (write(3, &byte, 1) != 1) return 1;
    }
  }
  return 0;
}
