// regatta-server: owns the tuning log and its jobs, and answers clients.
#include <pthread.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/lock_checks.h"
#include "base/log.h"
#include "base/log_flag.h"
#include "base/metrics/process_metrics.h"
#include "base/status_macros.h"
#include "base/stop_signals.h"
#include "compiler/codegen/compiler_version.h"
#include "compiler/compile.h"
#include "proto/grpc_log_service.h"
#include "proto/security/audit_log.h"
#include "proto/security/enrolment_client.h"
#include "proto/security/exposure.h"
#include "proto/security/metrics_flags.h"
#include "proto/security/security_flags.h"
#include "server/job/job_manager.h"
#include "server/log_inspection.h"
#include "server/log_service.h"
#include "server/query/lookup_stats.h"
#include "server/query/rebuilds.h"
#include "server/query/workload_info.h"
#include "server/server_metrics.h"
#include "server/server_snapshot.h"
#include "server/tracker_client.h"
#include "server/tuning_server.h"
#include "server/tuning_service.h"
#include "storage/tuning_log.h"

namespace regatta {
namespace {

// Who is revoked counts in the tracker; the server learns of it soon after.
constexpr absl::Duration kRevocationsEvery = absl::Seconds(15);

struct Flags {
  std::string listen = "127.0.0.1:7470";
  std::string tracker = "127.0.0.1:7471";
  std::string log;
  double check_log_hours = 24;
  bool no_rebuilds = false;
  SecurityFlags security;
  MetricsFlags metrics;
  std::string audit;
};

std::string DefaultLog() {
  const char* state = std::getenv("XDG_STATE_HOME");
  if (state != nullptr && *state != '\0') {
    return std::string(state) + "/regatta/tuning.db";
  }
  const char* home = std::getenv("HOME");
  return std::string(home == nullptr ? "." : home) +
         "/.local/state/regatta/tuning.db";
}

void AddFlags(CLI::App* app, Flags* flags) {
  flags->log = DefaultLog();
  app->add_option("--listen", flags->listen,
                  "Address to listen on for clients, HOST:PORT; port 0 picks a "
                  "free one")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app->add_option("--tracker", flags->tracker,
                  "Address of the tracker, HOST:PORT")
      ->type_name("HOST:PORT")
      ->capture_default_str();
  app->add_option("--log", flags->log,
                  "Tuning log: a SQLite file, made when missing; its folder "
                  "must exist")
      ->type_name("PATH")
      ->capture_default_str();
  app->add_option("--audit", flags->audit,
                  "File to which privileged calls and refusals are appended")
      ->type_name("PATH")
      ->default_str("the tuning log's path with .audit.jsonl after it");
  app->add_option("--check-log-hours", flags->check_log_hours,
                  "Hours between two checks of the whole log, the first after "
                  "a 24th of them; one that finds damage stops storing. 0: "
                  "never")
      ->check(CLI::Range(0.0, 8760.0))
      ->capture_default_str();
  AddSecurityFlags(app, &flags->security);
  AddMetricsFlags(app, &flags->metrics);
  app->add_flag("--no-rebuilds", flags->no_rebuilds,
                "Run no compiler here: do not find out whether answers of "
                "another compiler version are exact");
}

absl::StatusOr<std::string> VersionFor(const Target& target) {
  std::string version = CompilerVersionOfKind(target.kind, target.driver);
  if (version.empty()) {
    return absl::InvalidArgumentError("target: no code generator for kind '" +
                                      target.kind + "'");
  }
  return version;
}

// Differs between starts and between logs, without a source of entropy.
uint64_t DrawSeed(const TuningLog& log, const Clock& clock) {
  const std::string digest = Sha256Hex(
      log.LogId() + " " + std::to_string(absl::ToUnixNanos(clock.Wall())));
  return std::strtoull(digest.substr(0, 16).c_str(), nullptr, 16);
}

// Beside the log's file, whose path may begin with its kind.
std::string DefaultAudit(const std::string& log) {
  return std::string(absl::StripPrefix(log, "sqlite:")) + ".audit.jsonl";
}

int Fail(const absl::Status& status) {
  ReportFailure(std::string(status.message()));
  return absl::IsInvalidArgument(status) ? 2 : 1;
}

absl::Status CheckAddresses(const Flags& flags) {
  for (const std::string& address : {flags.listen, flags.tracker}) {
    RETURN_IF_ERROR(CheckExposure(address, !flags.security.tls.empty(),
                                  flags.security.insecure_plaintext));
  }
  return CheckMetrics(flags.metrics);
}

// What the tracker is asked for people.
void AskTracker(TrackerClient* tracker, TuningServiceOptions* options) {
  options->list_devices = [tracker, clock = options->clock] {
    auto response = tracker->ListDevices();
    if (!response.ok()) return response;
    v1::PeerFacts* self = response->mutable_server();
    self->set_version(REGATTA_VERSION);
    self->set_compiler_version(CompilerVersionOfKind("cpu"));
    self->set_unix_ms(absl::ToUnixMillis(clock->Wall()));
    return response;
  };
  options->control_devices =
      [tracker](const v1::ControlDevicesRequest& request) {
        return tracker->ControlDevices(request);
      };
  options->device_history = [tracker](const v1::DeviceHistoryRequest& request) {
    return tracker->DeviceHistory(request);
  };
}

absl::StatusOr<std::unique_ptr<MetricsEndpoint>> ServeMetrics(
    const Flags& flags, const JobManager* jobs, const LookupStats* lookups,
    const LogInspection* inspection) {
  const std::string log(absl::StripPrefix(flags.log, "sqlite:"));
  return StartMetrics(
      flags.metrics, [jobs, lookups, inspection, log](MetricsPage& page) {
        CollectProcess("regatta-server", REGATTA_VERSION,
                       {{"compiler", CompilerVersionOfKind("cpu")}}, page);
        CollectServer(*jobs, *lookups, *inspection, log, page);
      });
}

int Serve(const Flags& flags) {
  BlockStopSignals();

  // Before anything is made or locked.
  if (absl::Status safe = CheckAddresses(flags); !safe.ok()) return Fail(safe);
  auto tls = OpenIdentity(flags.security, {Role::kServer}, RealClock());
  if (!tls.ok()) return Fail(tls.status());
  OpenOptions open;
  open.holder = "regatta-server at " + flags.listen;
  auto log = OpenTuningLog(flags.log, open);
  if (!log.ok()) return Fail(log.status());
  const Clock& clock = RealClock();
  auto audit = AuditLog::Open(
      flags.audit.empty() ? DefaultAudit(flags.log) : flags.audit, "server",
      clock);
  if (!audit.ok()) return Fail(audit.status());
  TrackerClient tracker(flags.tracker, (*log)->LogId(), *tls);
  const auto keeper =
      KeepThroughTracker(*tls, flags.tracker, kRevocationsEvery);

  JobManagerOptions job_options;
  job_options.log = log->get();
  job_options.dispatcher = &tracker;
  job_options.clock = &clock;
  job_options.compiler_version = VersionFor;
  job_options.seed = DrawSeed(**log, clock);
  auto jobs = JobManager::Create(std::move(job_options));
  if (!jobs.ok()) return Fail(jobs.status());

  std::optional<Rebuilds> rebuilds;
  GivesBinary gives_binary;
  if (!flags.no_rebuilds) {
    rebuilds.emplace(BoardBinaryHash);
    gives_binary = [&](const RecordedBinary& binary) {
      return rebuilds->Gives(binary);
    };
  }
  LookupStats lookups;
  TuningServiceOptions service_options;
  service_options.lookups = &lookups;
  service_options.jobs = jobs->get();
  service_options.log = log->get();
  service_options.clock = &clock;
  service_options.complete_target = CompleteTarget;
  service_options.compiler_version = VersionFor;
  service_options.gives_binary = gives_binary;
  AskTracker(&tracker, &service_options);
  TuningServiceImpl service(std::move(service_options));
  LogServiceImpl log_service(
      log->get(), DescribeWorkloadText, [&](const UpkeepProgress& progress) {
        return WriteServerSnapshot(**log, **jobs, CompleteTarget, VersionFor,
                                   gives_binary, progress);
      });
  ServerSecurity security;
  security.tls = *tls;
  security.insecure_plaintext = flags.security.insecure_plaintext;
  security.audit = audit->get();
  security.other_audit = [&](int64_t limit) {
    return tracker.ListAudit(limit);
  };
  auto server =
      TuningServer::Start(flags.listen, &service, &log_service, security);
  if (!server.ok()) return Fail(server.status());
  (*log)->NameHolder("regatta-server at " + (*server)->address());

  const LogInspection inspection(
      log->get(), std::string(absl::StripPrefix(flags.log, "sqlite:")),
      absl::Hours(flags.check_log_hours));
  const auto metrics = ServeMetrics(flags, jobs->get(), &lookups, &inspection);
  if (!metrics.ok()) return Fail(metrics.status());
  std::thread committer([&] { (*jobs)->Run(); });
  tracker.Start(jobs->get());
  std::cout << "listening on " << (*server)->address() << std::endl;

  LOG(kInfo) << "stopping on " << AwaitStopSignal();
  (*jobs)->Close();
  (*server)->Stop(absl::Milliseconds(500));
  tracker.Stop();
  committer.join();
  return 0;
}

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) {
  regatta::SetLogProgram("regatta-server");
  regatta::SkipLockChecks();
  regatta::KeepGrpcQuiet();
  regatta::Flags flags;
  CLI::App app(
      "Regatta's server: runs tuning jobs, keeps the tuning log and answers "
      "which schedule is best",
      "regatta-server");
  app.set_version_flag("--version",
                       std::string("regatta-server ") + REGATTA_VERSION);
  regatta::AddFlags(&app, &flags);
  regatta::AddLogFormatFlag(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return regatta::Serve(flags);
}
