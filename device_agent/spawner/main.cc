// regatta-spawner: see spawner.h. Started by an agent with a socket as
// descriptor 3; not for people.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <set>
#include <string>

#include "CLI/CLI.hpp"
#include "base/clock.h"
#include "base/log.h"
#include "device_agent/spawner/spawner.h"

int main(int argc, char** argv) {
  regatta::SetLogProgram("regatta-spawner");
  regatta::InheritLogFormat();
  CLI::App app("Starts and limits workers for regatta-agent, which runs it");
  std::vector<std::string> without;
  app.add_option("--without", without,
                 "Sandbox features not to use, for tests of poorer machines; "
                 "\"cgroup\" stands for all of cgroups")
      ->delimiter(',');
  CLI11_PARSE(app, argc, argv);
  // Ended by the agent's end of the socket, not by a terminal.
  signal(SIGINT, SIG_IGN);
  signal(SIGHUP, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  // It holds the locks of all its workers' processors.
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  regatta::Sandbox sandbox = regatta::Sandbox::Probe(
      std::set<std::string>(without.begin(), without.end()));
  absl::Status status = sandbox.EnterSharedNamespaces();
  // One that is stopped when its agent dies could not see that, and nobody else
  // would wake it: its workers would stay, and the cores that it holds locked.
  // After the namespaces, which take this back.
  prctl(PR_SET_PDEATHSIG, SIGCONT, 0, 0, 0);
  if (status.ok()) {
    regatta::Spawner spawner(std::move(sandbox),
                             regatta::FrameChannel(regatta::UniqueFd(3)),
                             regatta::RealClock());
    status = spawner.Run();
  }
  if (!status.ok()) LOG(kError) << status.message();
  return status.ok() ? 0 : 1;
}
