#include <cstdint>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "client/cli/best_request.h"
#include "client/cli/commands.h"
#include "client/cli/compile_choice.h"
#include "client/cli/compile_files.h"
#include "client/cli/compile_library.h"
#include "client/cli/documents.h"
#include "client/cli/exit_code.h"
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

absl::StatusOr<CompileFiles> Check(const Flags& flags) {
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
  ASSIGN_OR_RETURN(CompileFiles files,
                   CompileFiles::Named(flags.output, flags.header));
  if (!flags.file.empty() && !files.is_shared() && !files.is_launcher()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-o ", flags.output,
        ": --file makes a shared library; the name must end in .so"));
  }
  if (!flags.target.empty() && !flags.device_class.empty()) {
    return absl::InvalidArgumentError(
        "--target and --device-class exclude one another: a class has a "
        "target of its own");
  }
  RETURN_IF_ERROR(files.CheckNothingIsLost(
      {flags.source.log, flags.source.snapshot, flags.file}));
  return files;
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

int64_t WorkspaceBytes(const CompileFiles& files, const Module& module) {
  return files.is_launcher() ? DeviceWorkspaceBytes(module)
                             : module.workspace_bytes;
}

void PrintSummary(const CompileFiles& files,
                  const std::vector<std::string>& paths, const Module& module,
                  const Choice& choice) {
  std::cout << absl::StrJoin(paths, ", ") << ": " << module.name
            << "() computes " << module.workload << "\n"
            << "  target    " << module.target << "\n"
            << "  grade     " << choice.grade << ": " << choice.reason << "\n"
            << "  schedule  " << choice.schedule << "\n"
            << "  workspace " << FormatBytes(WorkspaceBytes(files, module))
            << "\n";
}

// The target that the answer is for, if `files` are of its kind.
absl::StatusOr<Target> TargetOf(const std::string& text,
                                const CompileFiles& files) {
  ASSIGN_OR_RETURN(Target target, ParseTarget(text));
  ASSIGN_OR_RETURN(target, CompleteTarget(target));
  RETURN_IF_ERROR(files.CheckKind(target.kind));
  return target;
}

// A launcher needs the source, too, which a part has.
absl::StatusOr<Module> Build(const Space& space, const std::string& schedule,
                             const CompileFiles& files) {
  if (!files.is_launcher()) return Compile(space, schedule, files.name());
  ASSIGN_OR_RETURN(Module module, CompilePart(space, schedule, files.name()));
  ASSIGN_OR_RETURN(module.loadable,
                   LinkParts({module}, space.context().target));
  return module;
}

absl::StatusOr<std::vector<std::string>> WriteModule(const CompileFiles& files,
                                                     const Target& target,
                                                     const Module& module,
                                                     const Choice& choice) {
  if (files.is_launcher()) {
    return files.WriteLauncher(
        target.kind, {{&module, choice.grade, choice.reason}}, module.loadable);
  }
  return files.Write(files.is_shared() ? module.loadable : module.relocatable,
                     CHeader(module, choice.grade, choice.reason));
}

absl::Status CompileTo(const Flags& flags, const CompileFiles& files) {
  ASSIGN_OR_RETURN(Workload workload, ParseWorkload(flags.workload));
  ASSIGN_OR_RETURN(v1::BestRequest request, Request(flags, workload));
  if (!request.target().empty()) {
    RETURN_IF_ERROR(TargetOf(request.target(), files).status());
  }
  ASSIGN_OR_RETURN(const BestAsker ask, OpenSource(flags.source));
  auto answer = ask(request);
  if (!answer.ok()) {
    return ExplainClassError(answer.status(),
                             flags.device_class + flags.target);
  }
  ASSIGN_OR_RETURN(const Target target, TargetOf(answer->target(), files));
  ASSIGN_OR_RETURN(Space space,
                   CreateSpace(workload, target, flags.policy.threads));
  const Choice choice = ChooseSchedule(*answer, space);
  const absl::StatusOr<Module> built = Build(space, choice.schedule, files);
  if (!built.ok()) {
    return ExplainRefusal(built.status(), choice, flags.workload, target);
  }
  const Module& module = *built;
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   WriteModule(files, target, module, choice));
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
               {"function", module.name},
               {"output", flags.output},
               {"header", files.header()},
               {"files", paths},
               {"binary_hash", module.BinaryHash()},
               {"workspace_bytes", WorkspaceBytes(files, module)}});
  } else {
    PrintSummary(files, paths, module, choice);
  }
  return absl::OkStatus();
}

Json LibraryDocument(const Flags& flags, const CompileFiles& files,
                     const std::vector<std::string>& paths,
                     const Library& library) {
  Json functions = Json::array();
  for (const LibraryFunction& function : library.functions) {
    const v1::Policy& policy = function.question.policy();
    functions.push_back(
        {{"function", function.module.name},
         {"workload", function.module.workload},
         {"workload_key", function.module.workload_key},
         {"threads", policy.threads()},
         {"cache", std::string(CacheStateName(policy.cache()))},
         {"grade", function.choice.grade},
         {"reason", function.choice.reason},
         {"schedule", function.choice.schedule},
         {"workspace_bytes", WorkspaceBytes(files, function.module)}});
  }
  return {{"device_class",
           TextOrNull(library.functions[0].question.device_class())},
          {"target", library.target.ToString()},
          {"output", flags.output},
          {"header", files.header()},
          {"files", paths},
          {"binary_hash", Sha256Hex(library.loadable)},
          {"functions", functions}};
}

absl::Status CompileLibraryTo(const Flags& flags, const CompileFiles& files) {
  LibraryRequest request;
  request.library = files.name();
  request.launcher = files.is_launcher();
  ASSIGN_OR_RETURN(request.job, ReadJobsFile(flags.file, &request.symbols));
  request.file_name = flags.file;
  request.device_class = flags.device_class;
  if (!flags.target.empty()) {
    ASSIGN_OR_RETURN(request.target, CompleteTargetText(flags.target));
    RETURN_IF_ERROR(TargetOf(request.target, files).status());
  }
  ASSIGN_OR_RETURN(const BestAsker ask, OpenSource(flags.source));
  request.check_target = [&files](const Target& target) {
    return files.CheckKind(target.kind);
  };
  ASSIGN_OR_RETURN(const Library library,
                   BuildLibrary(request, ask, /*quiet=*/flags.json));
  const std::vector<HeaderFunction> functions = HeaderFunctions(library);
  ASSIGN_OR_RETURN(
      const std::vector<std::string> paths,
      files.is_launcher()
          ? files.WriteLauncher(library.target.kind, functions,
                                library.loadable)
          : files.Write(library.loadable,
                        CLibraryHeader(functions, request.library)));
  if (flags.json) {
    PrintJson(LibraryDocument(flags, files, paths, library));
    return absl::OkStatus();
  }
  std::cout << absl::StrJoin(paths, ", ") << ": " << library.functions.size()
            << " function(s)\n"
            << "  target    " << library.target.ToString() << "\n";
  for (const LibraryFunction& function : library.functions) {
    std::cout << "  " << function.module.name << "() computes "
              << function.module.workload << "\n    " << function.choice.grade
              << ": " << function.choice.reason << "\n";
  }
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  ASSIGN_OR_RETURN(const CompileFiles files, Check(flags));
  return flags.file.empty() ? CompileTo(flags, files)
                            : CompileLibraryTo(flags, files);
}

}  // namespace

AddedCommand AddCompile(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "compile",
      "The best-known schedule as a C library, or for devices with a C "
      "launcher; the default when none is known");
  flags->command = command;
  AddWorkloadArgument(command, &flags->workload)->required(false);
  command->add_option("--file", flags->file,
                      "Compile every task of this job file into one library");
  command
      ->add_option("-o,--output", flags->output,
                   "Shared library (.so) or object file (.o) to write; for "
                   "devices the name of a launcher's files, without extension")
      ->required();
  command->add_option("--header", flags->header,
                      "C header to write; its name names the function. "
                      "Default: the output's name with .h");
  command
      ->add_option("--device-class", flags->device_class,
                   "Class of boards. Default: this machine's")
      ->check(NotEmpty())
      ->check(Utf8Text());
  command
      ->add_option("--target", flags->target,
                   "Target text, for a target that no board has: "
                   "'cpu,triple=aarch64-linux-gnu,mcpu=cortex-a72', "
                   "'cuda,mcpu=sm_80'")
      ->check(NotEmpty())
      ->check(Utf8Text());
  AddPolicyFlags(command, &flags->policy);
  AddSourceFlags(command, &flags->source);
  AddJsonFlag(command, &flags->json);
  return {command, [flags] {
            const absl::Status status = Run(*flags);
            return status.ok() ? kExitDone : Fail(status);
          }};
}

}  // namespace regatta::cli
