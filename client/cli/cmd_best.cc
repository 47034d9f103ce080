#include <iostream>

#include "absl/strings/str_cat.h"
#include "client/cli/best_request.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/file_question.h"
#include "client/cli/format.h"
#include "compiler/ops/op.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

struct Flags {
  SourceFlags source;
  PolicyFlags policy;
  std::string workload;
  std::string device_class;
  std::string require;
  bool json = false;
};

void PrintAnswer(const v1::BestAnswer& answer) {
  std::cout << answer.workload() << " on " << answer.device_class() << ", "
            << answer.policy().threads() << " thread(s), "
            << CacheStateName(answer.policy().cache()) << " cache\n"
            << "  grade     " << answer.grade() << ": " << answer.reason()
            << "\n"
            << "  schedule  " << answer.schedule().text() << "\n"
            << "  time      " << FormatNs(answer.time_ns());
  if (answer.low_ns() > 0) {
    std::cout << " (95 % interval " << FormatNs(answer.low_ns()) << " to "
              << FormatNs(answer.high_ns()) << ", " << answer.samples()
              << " timed blocks on " << answer.boards() << " board(s))";
  }
  std::cout << "\n  default   " << FormatNs(answer.default_ns()) << "\n";
}

int Run(const Flags& flags) {
  auto workload = ParseWorkload(flags.workload);
  if (!workload.ok()) return Fail(workload.status());
  auto device_class = ClassOrHost(flags.device_class);
  if (!device_class.ok()) return Fail(device_class.status());
  auto ask = OpenSource(flags.source);
  if (!ask.ok()) return Fail(ask.status());
  v1::BestRequest request;
  request.set_workload(workload->text);
  request.set_device_class(*device_class);
  *request.mutable_policy() = flags.policy.ToProto();
  auto answer = (*ask)(request);
  if (!answer.ok()) {
    return Fail(ExplainClassError(answer.status(), flags.device_class));
  }
  if (flags.json) {
    PrintJson(BestDocument(*answer));
  } else {
    PrintAnswer(*answer);
  }
  if (flags.require == "exact" && answer->grade() != "exact") {
    const std::string& field = answer->differing_field();
    std::cerr << "regatta: the answer is " << answer->grade()
              << ", not exact: " << field << (field.empty() ? "" : " differs: ")
              << answer->reason() << "\n";
    return kExitNotExact;
  }
  return kExitDone;
}

}  // namespace

AddedCommand AddBest(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "best", "The best-known schedule of a workload, graded");
  AddWorkloadArgument(command, &flags->workload);
  command
      ->add_option("--device-class", flags->device_class,
                   "Class of boards. Default: this machine's")
      ->check(Utf8Text());
  AddPolicyFlags(command, &flags->policy);
  command
      ->add_option("--require", flags->require,
                   "exact: exit with 3 when the answer is not exact")
      ->check(CLI::IsMember({"exact"}));
  AddSourceFlags(command, &flags->source);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] { return Run(*flags); }};
}

}  // namespace regatta::cli
