#include <iostream>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/server_client.h"
#include "compiler/ops/op.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

struct Flags {
  ServerFlags server;
  PolicyFlags policy;
  CLI::App* command = nullptr;
  std::string workload;
  std::string device_class;
  bool json = false;
};

std::vector<std::string> Row(const v1::Record& record) {
  const v1::TrialResult& result = record.result();
  std::string outcome = OutcomeName(result.outcome());
  if (result.abandoned()) outcome += ", abandoned as slow";
  if (!result.detail().empty()) outcome += ": " + result.detail();
  return {result.spec().trial_id(),
          TrialKindName(result.spec().kind()),
          result.time_ns() > 0 ? FormatNs(result.time_ns()) : "-",
          result.device_id().empty() ? "-" : result.device_id(),
          result.spec().schedule().text(),
          outcome};
}

int Run(const Flags& flags) {
  auto workload = ParseWorkload(flags.workload);
  if (!workload.ok()) return Fail(workload.status());
  auto client = ConnectServer(flags.server);
  if (!client.ok()) return Fail(client.status());
  v1::ListRecordsRequest request;
  request.set_workload(workload->text);
  request.set_device_class(flags.device_class);
  // A flag that was not given does not filter; the server filters by the whole
  // policy or not at all.
  const bool by_threads = flags.command->count("--threads") > 0;
  const bool by_cache = flags.command->count("--cache") > 0;
  const v1::Policy policy = flags.policy.ToProto();
  request.set_any_policy(!(by_threads && by_cache));
  *request.mutable_policy() = policy;
  const auto wanted = [&](const v1::Policy& of) {
    return (!by_threads || of.threads() == policy.threads()) &&
           (!by_cache || of.cache() == policy.cache());
  };

  Json documents = Json::array();
  std::vector<std::vector<std::string>> rows = {
      {"TRIAL", "KIND", "TIME", "DEVICE", "SCHEDULE", "OUTCOME"}};
  const absl::Status status =
      (*client)->ListRecords(request, [&](const v1::Record& record) {
        if (!wanted(record.result().spec().policy())) return;
        if (flags.json) {
          documents.push_back(RecordDocument(record));
        } else {
          rows.push_back(Row(record));
        }
      });
  if (!status.ok()) return Fail(status);
  if (flags.json) {
    PrintJson(
        {{"workload", workload->text},
         {"workload_key", workload->key},
         {"device_class", TextOrNull(flags.device_class)},
         {"threads", by_threads ? Json(flags.policy.threads) : Json(nullptr)},
         {"cache", by_cache ? Json(flags.policy.cache) : Json(nullptr)},
         {"records", documents}});
  } else if (rows.size() == 1) {
    std::cout << "No records of " << workload->text << ".\n";
  } else {
    std::cout << FormatTable(rows);
  }
  return kExitDone;
}

}  // namespace

AddedCommand AddRecords(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "records", "What was tried on a workload: every outcome, oldest first");
  flags->command = command;
  AddWorkloadArgument(command, &flags->workload);
  command
      ->add_option("--device-class", flags->device_class,
                   "Only this class of boards. Default: all")
      ->check(Utf8Text());
  AddPolicyFlags(command, &flags->policy);
  AddServerFlag(command, &flags->server);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli
