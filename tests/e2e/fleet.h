// A whole Regatta on loopback, as `regatta up` starts it, in a folder of its
// own.
#ifndef REGATTA_TESTS_E2E_FLEET_H_
#define REGATTA_TESTS_E2E_FLEET_H_

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace regatta::testing {

using Json = nlohmann::json;

class Fleet {
 public:
  // Starts `regatta up` with these further arguments; call Ready next.
  explicit Fleet(std::vector<std::string> arguments = {});
  // SIGTERM, as a person's Ctrl-C.
  ~Fleet();

  // Waits for a registered device. False, with a test failure that quotes the
  // logs, when there is none within 20 s.
  bool Ready();

  // Runs a command against this fleet's server.
  ProcessResult Run(std::vector<std::string> arguments,
                    absl::Duration limit = absl::Seconds(90)) const;
  std::unique_ptr<Process> Start(std::vector<std::string> arguments) const;
  // The document of a command that must succeed; null after a test failure.
  Json Document(std::vector<std::string> arguments,
                absl::Duration limit = absl::Seconds(90)) const;

  // New trials of a job's first task so far. -1: the server has no answer now.
  int64_t TrialsOf(int64_t job) const;

  // "server", "tracker" or "agent". -1: not running now.
  pid_t DaemonPid(const std::string& daemon) const;

  Process& up() { return *up_; }
  const std::string& dir() const { return dir_; }
  // Addresses; the tracker's once the server's is known.
  std::string server() const;
  std::string tracker() const;
  std::string Logs() const;

  // SIGTERM and wait for the end.
  ProcessResult Stop();

 private:
  TempDir temp_;
  std::string dir_;
  std::unique_ptr<Process> up_;
};

// A program of the build under test.
std::string Program(const std::string& name);

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_E2E_FLEET_H_
