// Server, tracker and agents as processes of a test, each with a folder of its
// own, a log that outlives its restarts, and the same port after every start.
//
// Nothing is checked here but what a test must be able to rely on: a daemon
// that does not start shows when it is waited for.
//
// Not thread-safe.
#ifndef REGATTA_TESTS_SUPPORT_DAEMONS_H_
#define REGATTA_TESTS_SUPPORT_DAEMONS_H_

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/process.h"

namespace regatta::testing {

// Processors that tests may use, as words of --cores.
std::vector<std::string> UsableCores();

class Daemons {
 public:
  static constexpr absl::Duration kStopLimit = absl::Seconds(60);

  // `folder`: exists; everything of these daemons. `programs`: where Regatta's
  // are. Ports of loopback are chosen now.
  Daemons(std::string folder, std::string programs);
  // As StopAll; what does not end is killed.
  ~Daemons();
  Daemons(const Daemons&) = delete;

  // --- what there is; nothing starts. `more`: further words of the command
  // line. `tracker`: HOST:PORT to dial, the tracker itself unless given.
  void AddTracker(const std::vector<std::string>& more);  // "tracker"
  void AddServer(const std::vector<std::string>& more,
                 const std::string& tracker = "");  // "server"
  // Its name is its id. Agents here share their locks of processors.
  void AddAgent(const std::string& id, const std::vector<std::string>& more,
                const std::string& tracker = "");
  // In the order in which they were added.
  const std::vector<std::string>& names() const { return names_; }
  bool Has(const std::string& name) const { return daemons_.contains(name); }

  // --- their lives
  // REQUIRES: it does not run.
  Process& Start(const std::string& name);
  // All that do not run.
  void StartAll();
  bool Running(const std::string& name) const;
  // Of the last start.
  Process& process(const std::string& name) const;
  // SIGKILL; returns when it is gone.
  void Kill(const std::string& name);
  // SIGTERM, even where it is stopped. "": it ended by itself with status 0;
  // else what it did.
  std::string Stop(const std::string& name, absl::Duration limit = kStopLimit);
  // The agents together, then the server, then the tracker, so that what one
  // has to say is heard by the next. What was not as it should be, a line each.
  std::vector<std::string> StopAll(absl::Duration limit = kStopLimit);
  // "": all that were started run; else who does not, and its last words.
  std::string Death() const;

  // --- where things are
  std::string tracker() const;  // HOST:PORT
  std::string server() const;
  // The folder of a daemon's state; there once it was added.
  std::string StateOf(const std::string& name) const {
    return folder_ + "/" + name;
  }
  std::string log() const { return StateOf("server") + "/tuning.db"; }
  std::string LogsFolder() const { return folder_ + "/logs"; }
  // The end of what the daemon wrote, over all its starts.
  std::string Said(const std::string& name) const;
  std::string Said() const;  // of all
  // Programs run by paths of this folder, so that whatever is left of these
  // daemons and their workers can be told from others'.
  std::string programs() const { return folder_ + "/bin"; }
  std::vector<pid_t> Left() const;

  // --- commands of `regatta` against the server, which may be away
  ProcessResult Run(std::vector<std::string> arguments,
                    absl::Duration limit = absl::Seconds(30)) const;
  std::unique_ptr<Process> Ask(std::vector<std::string> arguments) const;
  // The server answers and has the tracker's word.
  bool Ready(absl::Duration limit = absl::Seconds(20)) const;

 private:
  struct Daemon {
    std::vector<std::string> argv;
    std::unique_ptr<Process> process;  // null: never started
  };
  // Waits for the end of what was asked to; as Stop.
  std::string End(const std::string& name, absl::Duration limit);
  void Add(const std::string& name, const std::string& program,
           std::vector<std::string> arguments,
           const std::vector<std::string>& more);

  const std::string folder_;
  const int tracker_port_, server_port_;
  std::vector<std::string> names_;
  std::map<std::string, Daemon> daemons_;
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_SUPPORT_DAEMONS_H_
