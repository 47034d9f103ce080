// Real programs in tests: run one to its end, or in the background.
#ifndef REGATTA_TESTS_SUPPORT_PROCESS_H_
#define REGATTA_TESTS_SUPPORT_PROCESS_H_

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/scale.h"

namespace regatta::testing {

struct ProcessResult {
  int exit_code = -1;  // -1: killed
  int signal = 0;      // that killed it
  bool timed_out = false;
  std::string out;
  std::string err;
};

// Environment variables as NAME=VALUE, added to this process's own.
using Environment = std::vector<std::string>;

// A child that is killed, with its process group, when the object goes.
class Process {
 public:
  Process(const std::vector<std::string>& argv, const Environment& environment);
  ~Process();
  Process(const Process&) = delete;

  pid_t pid() const { return pid_; }
  bool Running();
  void Signal(int signal);
  // Waits for the end; kills it at the limit and says so.
  ProcessResult Wait(absl::Duration limit);

 private:
  pid_t pid_ = -1;
  bool reaped_ = false;
  int wait_status_ = 0;
  std::string out_path_, err_path_;
};

ProcessResult RunProcess(const std::vector<std::string>& argv,
                         const Environment& environment = {},
                         absl::Duration limit = absl::Seconds(60));

// True as soon as `condition` holds; false when it does not within `limit`.
bool WaitFor(absl::Duration limit, const std::function<bool()>& condition);

// Pids of direct children of `parent` whose command line contains `text`.
std::vector<pid_t> ChildrenOf(pid_t parent, const std::string& text);
// Pids of all processes whose command line contains `text`.
std::vector<pid_t> ProcessesWith(const std::string& text);

// Pids of everything below a process, now.
std::vector<pid_t> ProcessesBelow(pid_t ancestor);
// True as soon as none of them lives; false when one does after `limit`.
bool AllGone(const std::vector<pid_t>& pids, absl::Duration limit);

// A fresh folder, removed with everything in it at the end of its life.
class TempDir {
 public:
  explicit TempDir(const std::string& parent = "/tmp");
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A port of 127.0.0.1 that nobody listens on now, for a daemon that is to have
// the same after every start.
int FreePort();

// What could be read: "" for a file that is not there or went away.
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SUPPORT_PROCESS_H_
