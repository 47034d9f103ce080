#include <filesystem>
#include <iostream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "client/cli/best_request.h"
#include "client/cli/commands.h"
#include "client/cli/compile_choice.h"
#include "client/cli/compile_library.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
#include "client/cli/file_output.h"
#include "client/cli/file_question.h"
#include "client/cli/format.h"
#include "client/cli/host_class.h"
#include "client/cli/jobs_file.h"
#include "compiler/compile.h"
#include "compiler/module/c_interface.h"
#include "compiler/ops/op.h"
#include "proto/outcome_names.h"

namespace regatta::cli {
namespace {

struct Flags {
  SourceFlags source;
  PolicyFlags policy;
  std::string workload;
  std::string file;
  std::string device_class;
  std::string target;
  std::string output;
  std::string header;
  bool json = false;
  const CLI::App* command = nullptr;
};

// k.h beside lib.so when --header was not given: lib.h.
std::string HeaderPath(const Flags& flags) {
  if (!flags.header.empty()) return flags.header;
  return std::filesystem::path(flags.output).replace_extension(".h").string();
}

bool IsShared(const Flags& flags) {
  return absl::EndsWith(flags.output, ".so");
}

// Neither file may be what the command reads, or a tuning log.
absl::Status CheckOutputs(const Flags& flags) {
  const std::vector<std::string> inputs = {flags.source.log,
                                           flags.source.snapshot, flags.file};
  RETURN_IF_ERROR(CheckOutput(flags.output, inputs));
  return CheckOutput(HeaderPath(flags), inputs);
}

absl::Status Check(const Flags& flags) {
  if (flags.workload.empty() == flags.file.empty()) {
    return absl::InvalidArgumentError(
        flags.file.empty() ? "give a workload, or several with --file"
                           : "a workload and --file exclude one another");
  }
  for (const char* flag : {"--threads", "--cache"}) {
    if (!flags.file.empty() && flags.command->count(flag) > 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          flag, " does not go with --file: each task says its own"));
    }
  }
  if (!flags.file.empty() && !IsShared(flags)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-o ", flags.output,
        ": --file makes a shared library; the name must end in .so"));
  }
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
  return CheckOutputs(flags);
}

absl::StatusOr<std::string> CompleteTargetText(const std::string& text) {
  ASSIGN_OR_RETURN(Target target, ParseTarget(text));
  ASSIGN_OR_RETURN(target, CompleteTarget(target));
  return target.ToString();
}

absl::StatusOr<v1::BestRequest> Request(const Flags& flags,
                                        const Workload& workload) {
  v1::BestRequest request;
  request.set_workload(workload.text);
  *request.mutable_policy() = flags.policy.ToProto();
  if (!flags.target.empty()) {
    ASSIGN_OR_RETURN(const std::string target,
                     CompleteTargetText(flags.target));
    request.set_target(target);
  } else {
    ASSIGN_OR_RETURN(std::string device_class, ClassOrHost(flags.device_class));
    request.set_device_class(device_class);
  }
  return request;
}

// Both files or none.
absl::Status WriteFiles(const Flags& flags, const std::string& binary,
                        const std::string& header_text) {
  ASSIGN_OR_RETURN(StagedFile library,
                   StagedFile::Write(flags.output, binary,
                                     /*executable=*/IsShared(flags)));
  ASSIGN_OR_RETURN(StagedFile header,
                   StagedFile::Write(HeaderPath(flags), header_text,
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
  ASSIGN_OR_RETURN(Workload workload, ParseWorkload(flags.workload));
  ASSIGN_OR_RETURN(std::string name, FunctionName(HeaderPath(flags)));
  ASSIGN_OR_RETURN(v1::BestRequest request, Request(flags, workload));
  ASSIGN_OR_RETURN(const BestAsker ask, OpenSource(flags.source));
  auto answer = ask(request);
  if (!answer.ok()) {
    return ExplainClassError(answer.status(),
                             flags.device_class + flags.target);
  }
  ASSIGN_OR_RETURN(Target target, ParseTarget(answer->target()));
  ASSIGN_OR_RETURN(target, CompleteTarget(target));
  ASSIGN_OR_RETURN(Space space,
                   CreateSpace(workload, target, flags.policy.threads));
  const Choice choice = ChooseSchedule(*answer, space);
  ASSIGN_OR_RETURN(Module module, Compile(space, choice.schedule, name));
  RETURN_IF_ERROR(
      WriteFiles(flags, IsShared(flags) ? module.loadable : module.relocatable,
                 CHeader(module, choice.grade, choice.reason)));
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

Json LibraryDocument(const Flags& flags, const Library& library) {
  Json functions = Json::array();
  for (const LibraryFunction& function : library.functions) {
    const v1::Policy& policy = function.question.policy();
    functions.push_back({{"function", function.module.name},
                         {"workload", function.module.workload},
                         {"workload_key", function.module.workload_key},
                         {"threads", policy.threads()},
                         {"cache", std::string(CacheStateName(policy.cache()))},
                         {"grade", function.choice.grade},
                         {"reason", function.choice.reason},
                         {"schedule", function.choice.schedule},
                         {"workspace_bytes", function.module.workspace_bytes}});
  }
  return {{"device_class",
           TextOrNull(library.functions[0].question.device_class())},
          {"target", library.target.ToString()},
          {"output", flags.output},
          {"header", HeaderPath(flags)},
          {"binary_hash", Sha256Hex(library.loadable)},
          {"functions", functions}};
}

absl::Status CompileLibraryTo(const Flags& flags) {
  LibraryRequest request;
  ASSIGN_OR_RETURN(request.library, FunctionName(HeaderPath(flags)));
  ASSIGN_OR_RETURN(request.job, ReadJobsFile(flags.file, &request.symbols));
  request.file_name = flags.file;
  request.device_class = flags.device_class;
  if (!flags.target.empty()) {
    ASSIGN_OR_RETURN(request.target, CompleteTargetText(flags.target));
  }
  ASSIGN_OR_RETURN(const BestAsker ask, OpenSource(flags.source));
  ASSIGN_OR_RETURN(const Library library,
                   BuildLibrary(request, ask, /*quiet=*/flags.json));
  RETURN_IF_ERROR(WriteFiles(flags, library.loadable, library.header));
  if (flags.json) {
    PrintJson(LibraryDocument(flags, library));
    return absl::OkStatus();
  }
  std::cout << flags.output << ", " << HeaderPath(flags) << ": "
            << library.functions.size() << " function(s)\n"
            << "  target    " << library.target.ToString() << "\n";
  for (const LibraryFunction& function : library.functions) {
    std::cout << "  " << function.module.name << "() computes "
              << function.module.workload << "\n    " << function.choice.grade
              << ": " << function.choice.reason << "\n";
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
  flags->command = command;
  AddWorkloadArgument(command, &flags->workload)->required(false);
  command->add_option("--file", flags->file,
                      "Compile every task of this job file into one library");
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
  AddSourceFlags(command, &flags->source);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] {
            absl::Status status = Check(*flags);
            if (status.ok()) {
              status = flags->file.empty() ? CompileTo(*flags)
                                           : CompileLibraryTo(*flags);
            }
            return status.ok() ? kExitDone : Fail(status);
          }};
}

}  // namespace regatta::cli
