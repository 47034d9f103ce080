#include <filesystem>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/cli/best_request.h"
#include "client/cli/commands.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/file_output.h"
#include "client/cli/format.h"
#include "client/cli/host_class.h"
#include "client/cli/log_question.h"
#include "client/cli/server_client.h"
#include "compiler/compile.h"
#include "compiler/module/c_interface.h"
#include "compiler/ops/op.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

struct Flags {
  ServerFlags server;
  PolicyFlags policy;
  std::string workload;
  std::string device_class;
  std::string target;
  std::string log;
  std::string output;
  std::string header;
  bool json = false;
};

// The schedule to compile, and why this one.
struct Choice {
  std::string schedule;
  std::string grade;
  std::string reason;
};

absl::StatusOr<v1::BestAnswer> Ask(const Flags& flags,
                                   const v1::BestRequest& request) {
  if (!flags.log.empty()) return AskLogFile(flags.log, request);
  ASSIGN_OR_RETURN(auto client, ConnectServer(flags.server.server));
  return client->Best(request);
}

// Only answers that were timed where they will be used may replace the
// default; what was measured elsewhere is a suggestion.
Choice Choose(const v1::BestAnswer& answer, const Space& space,
              const std::string& own_compiler) {
  const std::string fallback = space.Print(space.Default());
  if (answer.grade() == "default") {
    return {fallback, "default", answer.reason()};
  }
  if (answer.grade() != "exact" && answer.grade() != "compatible") {
    return {fallback, "default",
            absl::StrCat("what is known is a ", answer.grade(),
                         " that was not timed against the default here (",
                         answer.reason(), ")")};
  }
  auto schedule = space.Parse(answer.schedule().text());
  if (!schedule.ok()) {
    return {fallback, "default",
            absl::StrCat("the log's answer is of another space (",
                         schedule.status().message(), ")")};
  }
  if (auto refusal = space.Refusal(*schedule)) {
    return {fallback, "default",
            absl::StrCat("the log's answer is refused here (", *refusal, ")")};
  }
  // The server judged by its compiler, which need not be the one that builds.
  if (answer.grade() == "exact" && !answer.compiler_version().empty() &&
      answer.compiler_version() != own_compiler) {
    return {answer.schedule().text(), "compatible",
            absl::StrCat("measured with compiler ", answer.compiler_version(),
                         ", this program builds with ", own_compiler)};
  }
  return {answer.schedule().text(), answer.grade(), answer.reason()};
}

// k.h beside lib.so when --header was not given: lib.h.
std::string HeaderPath(const Flags& flags) {
  if (!flags.header.empty()) return flags.header;
  return std::filesystem::path(flags.output).replace_extension(".h").string();
}

bool IsShared(const Flags& flags) {
  return absl::EndsWith(flags.output, ".so");
}

absl::Status Check(const Flags& flags) {
  if (!IsShared(flags) && !absl::EndsWith(flags.output, ".o")) {
    return absl::InvalidArgumentError(
        absl::StrCat("-o ", flags.output,
                     ": the name must end in .so (shared library) or "
                     ".o (object file)"));
  }
  if (!flags.target.empty() && !flags.device_class.empty()) {
    return absl::InvalidArgumentError(
        "--target and --device-class exclude one another: a class has a "
        "target of its own");
  }
  if (HeaderPath(flags) == flags.output) {
    return absl::InvalidArgumentError(
        absl::StrCat("--header ", flags.header, " is the file of -o, too"));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::BestRequest> Request(const Flags& flags,
                                        const Workload& workload) {
  v1::BestRequest request;
  request.set_workload(workload.text);
  *request.mutable_policy() = flags.policy.ToProto();
  if (!flags.target.empty()) {
    ASSIGN_OR_RETURN(Target target, ParseTarget(flags.target));
    ASSIGN_OR_RETURN(target, CompleteTarget(target));
    request.set_target(target.ToString());
  } else {
    ASSIGN_OR_RETURN(std::string device_class, ClassOrHost(flags.device_class));
    request.set_device_class(device_class);
  }
  return request;
}

// Both files or none.
absl::Status WriteFiles(const Flags& flags, const Module& module,
                        const Choice& choice) {
  const bool shared = IsShared(flags);
  ASSIGN_OR_RETURN(
      StagedFile library,
      StagedFile::Write(flags.output,
                        shared ? module.loadable : module.relocatable,
                        /*executable=*/shared));
  ASSIGN_OR_RETURN(
      StagedFile header,
      StagedFile::Write(HeaderPath(flags),
                        CHeader(module, choice.grade, choice.reason),
                        /*executable=*/false));
  RETURN_IF_ERROR(library.Commit());
  return header.Commit();
}

void PrintSummary(const Flags& flags, const Module& module,
                  const Choice& choice) {
  std::cout << flags.output << ", " << HeaderPath(flags) << ": " << module.name
            << "() computes " << module.workload << "\n"
            << "  target    " << module.target << "\n"
            << "  grade     " << choice.grade << ": " << choice.reason << "\n"
            << "  schedule  " << choice.schedule << "\n"
            << "  workspace " << FormatBytes(module.workspace_bytes) << "\n";
}

absl::Status CompileTo(const Flags& flags) {
  RETURN_IF_ERROR(Check(flags));
  ASSIGN_OR_RETURN(Workload workload, ParseWorkload(flags.workload));
  ASSIGN_OR_RETURN(std::string name, FunctionName(HeaderPath(flags)));
  ASSIGN_OR_RETURN(v1::BestRequest request, Request(flags, workload));
  auto answer = Ask(flags, request);
  if (!answer.ok()) {
    return ExplainClassError(answer.status(),
                             flags.device_class + flags.target);
  }
  ASSIGN_OR_RETURN(Target target, ParseTarget(answer->target()));
  ASSIGN_OR_RETURN(target, CompleteTarget(target));
  ASSIGN_OR_RETURN(Space space,
                   CreateSpace(workload, target, flags.policy.threads));
  const Choice choice = Choose(*answer, space, CompilerVersion(target));
  ASSIGN_OR_RETURN(Module module, Compile(space, choice.schedule, name));
  RETURN_IF_ERROR(WriteFiles(flags, module, choice));
  if (flags.json) {
    PrintJson({{"workload", workload.text},
               {"workload_key", workload.key},
               {"device_class", TextOrNull(request.device_class())},
               {"target", target.ToString()},
               {"threads", flags.policy.threads},
               {"cache", flags.policy.cache},
               {"grade", choice.grade},
               {"reason", choice.reason},
               {"schedule", choice.schedule},
               {"function", name},
               {"output", flags.output},
               {"header", HeaderPath(flags)},
               {"binary_hash", module.BinaryHash()},
               {"workspace_bytes", module.workspace_bytes}});
  } else {
    PrintSummary(flags, module, choice);
  }
  return absl::OkStatus();
}

}  // namespace

AddedCommand AddCompile(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "compile",
      "The best-known schedule as a C library; the default when "
      "none is known");
  AddWorkloadArgument(command, &flags->workload);
  command
      ->add_option("-o,--output", flags->output,
                   "Shared library (.so) or object file (.o) to write")
      ->required();
  command->add_option("--header", flags->header,
                      "C header to write; its name names the function. "
                      "Default: the output's name with .h");
  command
      ->add_option("--device-class", flags->device_class,
                   "Class of boards. Default: this machine's")
      ->check(Utf8Text());
  command
      ->add_option("--target", flags->target,
                   "Target text, for a target that no board has: "
                   "'cpu,triple=aarch64-linux-gnu,mcpu=cortex-a72'")
      ->check(Utf8Text());
  AddPolicyFlags(command, &flags->policy);
  command->add_option("--log", flags->log,
                      "Ask this tuning log, which no server may hold, instead "
                      "of a server");
  AddServerFlag(command, &flags->server);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] {
            const absl::Status status = CompileTo(*flags);
            return status.ok() ? kExitDone : Fail(status);
          }};
}

}  // namespace regatta::cli
