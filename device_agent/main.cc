// regatta-agent: serves one board's devices to a tracker, builds for boards
// that cannot, or both. Links no compiler and runs no generated code; workers
// below regatta-spawner do.
#include <iostream>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "base/log.h"
#include "base/log_flag.h"
#include "device_agent/agent_flags.h"
#include "device_agent/agent_process.h"
#include "device_agent/agent_security.h"
#include "device_agent/loop/agent_setup.h"
#include "device_agent/measure/core_locks.h"
#include "proto/grpc_log_service.h"

namespace regatta {
namespace {

void AddTrackerFlags(CLI::App* app, AgentFlags* flags,
                     AgentSecurityFlags* security) {
  app->add_option("--tracker", flags->tracker, "Address of the tracker")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  AddSecurityFlags(app, &security->shared);
  AddMetricsFlags(app, &security->metrics);
  app->add_option("--join", security->join,
                  "@FILE with the token of `regatta certs token`, or - for "
                  "standard input, by which this board gets its certificate: "
                  "the first time, and when the one it has counts no more; the "
                  "token itself would show to others on the machine")
      ->type_name("@FILE");
  app->add_option("--enrol", security->enrol,
                  "Address where the tracker lets newcomers join")
      ->type_name("HOST:PORT")
      ->default_str("the tracker's host, next port");
}

void AddFlags(CLI::App* app, AgentFlags* flags) {
  app->add_option("--state", flags->state,
                  "Folder for results not yet acknowledged and caches; made "
                  "when missing")
      ->type_name("DIR")
      ->default_str(DefaultStateDir());
  app->add_option("--id", flags->id,
                  "Name of this agent and its processors, unique in the fleet; "
                  "names of its other devices begin with it")
      ->type_name("NAME")
      ->default_str("from host name, machine id and cores");
  app->add_option("--cores", flags->cores,
                  "Processors to own, as a list; the class counts them, and "
                  "other devices use no others")
      ->type_name("LIST")
      ->default_str("all that this process may use");
  app->add_option("--devices", flags->devices,
                  "Kinds of devices to serve, separated by commas: cpu (the "
                  "processors of --cores, as one device), opencl, cuda")
      ->type_name("KINDS")
      ->capture_default_str();
  app->add_option("--cuda-driver", flags->cuda_driver,
                  "Library to use as CUDA's driver, such as "
                  "libregatta-cuda-sim.so, which simulates GPUs")
      ->check(CLI::ExistingFile)
      ->type_name("FILE")
      ->default_str("libcuda.so.1 of the system");
  app->add_option("--device-class", flags->device_class,
                  "Class of the processors: boards of one class share their "
                  "times")
      ->type_name("NAME")
      ->default_str("from processor and cores");
  app->add_option("--governor", flags->governor,
                  "Frequency governor that times of the class are taken under; "
                  "with another one the board's health is \"uncontrolled\" and "
                  "says what mends it")
      ->type_name("NAME")
      ->capture_default_str();
  app->add_option("--worker-dir", flags->worker_dir,
                  "Folder of regatta-spawner and the workers")
      ->type_name("DIR")
      ->default_str("the folder of this program");
  app->add_option("--exec-prefix", flags->exec_prefix,
                  "Command put before each worker, words separated by spaces "
                  "(\"/usr/bin/qemu-aarch64 -L /\"); before regatta-spawner "
                  "too where an emulator runs the agent itself")
      ->type_name("COMMAND")
      ->default_str("none");
  app->add_option("--require-sandbox", flags->require_sandbox,
                  "Sandbox features that must be in force, separated by "
                  "commas; without one of them the agent does not start")
      ->type_name("FEATURES")
      ->delimiter(',')
      ->default_str("none");
  app->add_option("--credit", flags->credit,
                  "Assignments to hold at once: one is timed, the others are "
                  "built, count")
      ->check(CLI::Range(1, 64))
      ->type_name("COUNT")
      ->capture_default_str();
  app->add_option("--returns-within-ms", flags->returns_within_ms,
                  "Told to the tracker when this agent is told to stop: it "
                  "comes back within so long, since the board reboots. The "
                  "tracker believes at most 300000")
      ->check(CLI::Range(int64_t{0}, int64_t{300'000}))
      ->type_name("MS")
      ->capture_default_str();
  app->add_option("--lock-folder", flags->lock_folder,
                  "Folder of the lock files of cores, shared by all programs "
                  "of this machine that time or build on them")
      ->type_name("DIR")
      ->default_str(DefaultLockFolder());
}

void AddBuildFlags(CLI::App* app, AgentFlags* flags) {
  app->add_option(
         "--role", flags->roles,
         "What this agent is for, separated by commas: device (serves "
         "this board's devices), builder (builds for boards that trust "
         "its key)")
      ->type_name("ROLES")
      ->delimiter(',')
      ->default_str("device");
  app->add_option("--builds", flags->builds,
                  "A builder's builds for other boards at once, count; never "
                  "more than --cores has processors")
      ->check(CLI::Range(1, 64))
      ->type_name("COUNT")
      ->default_str("1 beside the role device, else up to 4");
  app->add_option("--trust-builder", flags->trust_builders,
                  "A builder whose modules this board runs: its key, or a file "
                  "with keys; may be given several times. Needed, and used, "
                  "where no build worker is installed or with --measure-only")
      ->type_name("KEY|FILE");
  app->add_flag("--measure-only", flags->measure_only,
                "Have all modules from trusted builders, although a build "
                "worker may be here");
  app->add_option("--builder-wait", flags->builder_wait_s,
                  "How long a trial waits for builders before it ends as "
                  "device_fault, seconds")
      ->check(CLI::Range(1, 600))
      ->type_name("SECONDS")
      ->capture_default_str();
  app->add_option("--target", flags->target,
                  "Target of the processors, where it is not to be found out "
                  "(\"cpu,triple=aarch64-linux-gnu,mcpu=cortex-a76\")")
      ->type_name("TARGET")
      ->default_str("as the processors describe themselves");
}

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) {
  regatta::SetLogProgram("regatta-agent");
  regatta::KeepGrpcQuiet();
  regatta::AgentFlags flags;
  regatta::AgentSecurityFlags security;
  CLI::App app(
      "regatta-agent: builds, verifies and times kernels on this machine's "
      "cores for a tracker. Ctrl-C or SIGTERM lets what runs end, for at most "
      "60 s, then stops it; a second one stops it within two seconds.");
  app.set_version_flag("--version",
                       std::string("regatta-agent ") + REGATTA_VERSION);
  regatta::AddTrackerFlags(&app, &flags, &security);
  regatta::AddFlags(&app, &flags);
  regatta::AddBuildFlags(&app, &flags);
  regatta::AddLogFormatFlag(&app);
  bool print_key = false;
  app.add_flag("--print-builder-key", print_key,
               "Print the key that boards name with --trust-builder, from "
               "--state, where it is made when there is none, and end");
  bool check_options = false;
  app.add_flag("--check-options", check_options,
               "Say whether an agent with the other options would start here, "
               "as far as that shows without a tracker and workers, and end; "
               "nothing is made, nobody is asked");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    std::cerr << "regatta-agent: " << error.what()
              << "\nRun with --help for usage." << std::endl;
    return 2;
  }
  const absl::Status status =
      check_options ? regatta::CheckAgentOptions(std::move(flags), security)
      : print_key   ? regatta::PrintBuilderKey(std::move(flags))
                    : regatta::ServeAgent(std::move(flags), security);
  if (status.ok()) {
    if (check_options) std::cout << "the options are good" << std::endl;
    return 0;
  }
  regatta::ReportFailure(std::string(status.message()));
  return absl::IsInvalidArgument(status) ? 2 : 1;
}
