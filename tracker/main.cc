// regatta-tracker: owns boards, leases and the queue of a fleet.
#include <sys/resource.h>

#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "base/certs/authority.h"
#include "base/clock.h"
#include "base/lock_checks.h"
#include "base/log.h"
#include "base/log_flag.h"
#include "base/metrics/process_metrics.h"
#include "base/random.h"
#include "base/scheduling.h"
#include "base/status_macros.h"
#include "base/stop_signals.h"
#include "proto/grpc_log_service.h"
#include "proto/security/audit_log.h"
#include "proto/security/metrics_flags.h"
#include "proto/security/security_flags.h"
#include "tracker/config/fleet_config.h"
#include "tracker/file_fleet_store.h"
#include "tracker/tracker_options.h"
#include "tracker/tracker_service.h"

namespace regatta {
namespace {

struct Flags {
  std::string listen = "127.0.0.1:7471";
  std::string state;
  SecurityFlags security;
  MetricsFlags metrics;
  std::string authority;
  std::string enrol;
  std::vector<std::string> auto_approve_classes;
  std::string fleet_config;
  TrackerOptions options;
};

// A flag of whole milliseconds for a duration.
void AddMilliseconds(CLI::App* app, const std::string& name,
                     absl::Duration* value, const std::string& help) {
  app->add_option_function<int64_t>(
         name, [value](int64_t ms) { *value = absl::Milliseconds(ms); }, help)
      ->check(CLI::Range(int64_t{1}, int64_t{86'400'000}))
      ->type_name("MS")
      ->default_str(std::to_string(absl::ToInt64Milliseconds(*value)));
}

void AddFlags(CLI::App* app, Flags* flags) {
  app->add_option("--listen", flags->listen,
                  "Address to listen on, HOST:PORT; port 0 picks a free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app->add_option("--state", flags->state,
                  "Folder of the tracker's own file; made when missing")
      ->type_name("DIR")
      ->required();
  AddSecurityFlags(app, &flags->security);
  AddMetricsFlags(app, &flags->metrics);
  CLI::Option* authority =
      app->add_option("--authority", flags->authority,
                      "Folder of the lab's authority (`regatta certs init`): "
                      "renew certificates with it")
          ->type_name("DIR")
          ->needs("--tls");
  app->add_option("--enrol", flags->enrol,
                  "Address where newcomers join with a token, HOST:PORT")
      ->type_name("HOST:PORT")
      ->needs(authority);
  TrackerOptions* options = &flags->options;
  app->add_flag("--auto-approve", options->fleet.auto_approve.all,
                "Give work to every new device, without an operator's "
                "approval");
  app->add_flag("--auto-approve-local", options->fleet.auto_approve.local,
                "The same for devices whose agents run on this machine");
  app->add_option("--auto-approve-class", flags->auto_approve_classes,
                  "The same for devices of this class; may be repeated")
      ->type_name("CLASS");
  app->add_option("--fleet-config", flags->fleet_config,
                  "File with labels and power hooks of boards, who needs no "
                  "approval, and a webhook; see docs/operators-guide.md")
      ->type_name("FILE");
  AddMilliseconds(app, "--heartbeat-ms", &options->heartbeat,
                  "How often agents report, milliseconds");
  AddMilliseconds(app, "--lease-ms", &options->lease,
                  "How long an assignment stays an agent's after each "
                  "heartbeat, milliseconds");
  AddMilliseconds(app, "--accept-ms", &options->accept,
                  "Deadline for an agent to accept an assignment, "
                  "milliseconds");
  AddMilliseconds(app, "--suspect-ms", &options->suspect,
                  "Silence after which an agent is suspect, milliseconds");
  AddMilliseconds(app, "--lost-ms", &options->lost,
                  "Silence after which an agent's work goes to others, "
                  "milliseconds");
  AddMilliseconds(app, "--restart-window-ms", &options->restart_window,
                  "After a restart, how long to wait at most for agents that "
                  "held work, milliseconds");
  app->add_option("--max-attempts", options->max_attempts,
                  "Lost attempts after which a trial ends as agent_lost, "
                  "count")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
}

int Fail(const absl::Status& status) {
  ReportFailure(std::string(status.message()));
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

// What the flags say is added to what the file says.
absl::Status ReadFleetFile(Flags* flags) {
  FleetConfig& fleet = flags->options.fleet;
  const AutoApprove by_flag = fleet.auto_approve;
  if (!flags->fleet_config.empty()) {
    ASSIGN_OR_RETURN(fleet, ReadFleetConfig(flags->fleet_config));
  }
  fleet.auto_approve.all |= by_flag.all;
  fleet.auto_approve.local |= by_flag.local;
  fleet.auto_approve.classes.insert(flags->auto_approve_classes.begin(),
                                    flags->auto_approve_classes.end());
  return absl::OkStatus();
}

int Serve(const Flags& flags) {
  // Agents hold one connection each.
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  BlockStopSignals();
  YieldToOthers();

  if (absl::Status valid = Validate(flags.options); !valid.ok()) {
    ReportFailure(std::string(valid.message()));
    return 2;
  }
  if (absl::Status safe = CheckMetrics(flags.metrics); !safe.ok()) {
    return Fail(safe);
  }
  auto store = FileFleetStore::Open(flags.state);
  if (!store.ok()) return Fail(store.status());
  auto identity = OpenIdentity(flags.security, {Role::kTracker}, RealClock());
  if (!identity.ok()) return Fail(identity.status());
  std::unique_ptr<Authority> authority;
  if (!flags.authority.empty()) {
    auto opened = Authority::Open(flags.authority);
    if (!opened.ok()) return Fail(opened.status());
    authority = *std::move(opened);
  }
  auto audit =
      AuditLog::Open(flags.state + "/audit.jsonl", "tracker", RealClock());
  if (!audit.ok()) return Fail(audit.status());
  TrackerSecurity security;
  security.tls = *identity;
  security.insecure_plaintext = flags.security.insecure_plaintext;
  security.audit = audit->get();
  security.authority = authority.get();
  security.enrol = flags.enrol;
  std::random_device entropy;
  Random random((uint64_t{entropy()} << 32) | entropy());
  auto service = TrackerService::Start(flags.listen, flags.options, RealClock(),
                                       random, **store, security);
  if (!service.ok()) return Fail(service.status());
  const auto metrics = StartMetrics(
      flags.metrics, [service = service->get()](MetricsPage& page) {
        CollectProcess("regatta-tracker", REGATTA_VERSION, {}, page);
        service->Collect(page);
      });
  if (!metrics.ok()) return Fail(metrics.status());
  std::cout << "listening on " << (*service)->address() << std::endl;
  if (const std::string enrol = (*service)->enrol_address(); !enrol.empty()) {
    std::cout << "newcomers join on " << enrol << std::endl;
  }
  LOG(kInfo) << "stopping on " << AwaitStopSignal();
  (*service)->Stop(absl::Seconds(1));
  return 0;
}

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) {
  regatta::SetLogProgram("regatta-tracker");
  regatta::SkipLockChecks();
  regatta::KeepGrpcQuiet();
  regatta::Flags flags;
  CLI::App app(
      "Regatta's tracker: hands work to boards and results to the "
      "server",
      "regatta-tracker");
  app.set_version_flag("--version",
                       std::string("regatta-tracker ") + REGATTA_VERSION);
  regatta::AddFlags(&app, &flags);
  regatta::AddLogFormatFlag(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const absl::Status read = regatta::ReadFleetFile(&flags);
  if (!read.ok()) {
    regatta::ReportFailure(std::string(read.message()));
    return 2;
  }
  return regatta::Serve(flags);
}
