#include "client/cli/compile_library.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status_macros.h"
#include "client/cli/best_request.h"
#include "client/cli/format.h"
#include "client/cli/rate_progress.h"
#include "compiler/compile.h"
#include "compiler/launcher/launcher.h"
#include "compiler/module/c_interface.h"
#include "compiler/ops/op.h"

namespace regatta::cli {
namespace {

std::string TaskName(const std::string& file, size_t index) {
  return absl::StrCat(file, ": tasks[", index, "]");
}

// "matmul(m=512,n=512,k=512)" gives matmul_m512_n512_k512; an expression its
// family and the beginning of its key.
std::string DerivedName(const Workload& workload, const v1::Policy& policy) {
  std::string name;
  if (workload.text.find('[') != std::string::npos) {
    name = absl::StrCat(workload.family, "_", workload.key.substr(0, 12));
  } else {
    for (const char c : workload.text) {
      if (absl::ascii_isalnum(c)) {
        name += c;
      } else if (c != '=' && (name.empty() || name.back() != '_')) {
        name += '_';
      }
    }
    while (!name.empty() && name.back() == '_') name.pop_back();
  }
  if (policy.threads() > 1) absl::StrAppend(&name, "_t", policy.threads());
  if (policy.cache() == v1::CACHE_STATE_COLD) name += "_cold";
  return name;
}

// The class that all tasks name, or this machine's where none names any.
absl::StatusOr<std::string> ClassOfTasks(const LibraryRequest& request) {
  if (!request.device_class.empty()) return request.device_class;
  std::set<std::string> classes;
  size_t first = 0;
  for (int i = 0; i < request.job.tasks_size(); ++i) {
    for (const std::string& name : request.job.tasks(i).device_classes()) {
      if (classes.empty()) first = i;
      classes.insert(name);
      if (classes.size() < 2) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          TaskName(request.file_name, i), ".device_classes names ", name,
          " and tasks[", first, "] ",
          *classes.begin() == name ? *classes.rbegin() : *classes.begin(),
          ": one library is for one class; choose it with --device-class"));
    }
  }
  return ClassOrHost(classes.empty() ? "" : *classes.begin());
}

absl::StatusOr<std::vector<v1::BestRequest>> Questions(
    const LibraryRequest& request) {
  std::string device_class;
  if (request.target.empty()) {
    ASSIGN_OR_RETURN(device_class, ClassOfTasks(request));
  }
  std::vector<v1::BestRequest> questions;
  for (const v1::TaskRequest& task : request.job.tasks()) {
    v1::BestRequest question;
    question.set_workload(task.workload());
    question.set_device_class(device_class);
    question.set_target(request.target);
    *question.mutable_policy() = task.policy();
    questions.push_back(std::move(question));
  }
  return questions;
}

struct Planned {
  v1::BestRequest question;
  v1::BestAnswer answer;
  std::string name;
};

absl::StatusOr<LibraryFunction> Build(const Planned& planned,
                                      const Target& target) {
  LibraryFunction function;
  function.question = planned.question;
  ASSIGN_OR_RETURN(Workload workload,
                   ParseWorkload(planned.question.workload()));
  ASSIGN_OR_RETURN(const Space space,
                   CreateSpace(std::move(workload), target,
                               planned.question.policy().threads()));
  function.choice = ChooseSchedule(planned.answer, space);
  absl::StatusOr<Module> module =
      CompilePart(space, function.choice.schedule, planned.name);
  if (!module.ok()) {
    return ExplainRefusal(module.status(), function.choice,
                          planned.question.workload(), target);
  }
  function.module = *std::move(module);
  return function;
}

// Every task's function, in order; errors likewise, the first one counts.
absl::StatusOr<std::vector<LibraryFunction>> BuildAll(
    const std::vector<Planned>& planned, const Target& target,
    const std::string& file_name, bool quiet) {
  std::vector<absl::StatusOr<LibraryFunction>> built(
      planned.size(), absl::UnknownError("not built"));
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t done = 0;
  RateProgress progress("kernels", !quiet && StderrIsTerminal(), RealClock());
  const auto work = [&] {
    while (true) {
      const size_t i = next.fetch_add(1);
      if (i >= planned.size()) return;
      built[i] = Build(planned[i], target);
      std::lock_guard lock(mutex);
      ++done;
      if (!quiet) progress.Update("compiling", done, planned.size());
    }
  };
  std::vector<std::thread> threads;
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  for (size_t i = 1; i < std::min(cores, planned.size()); ++i) {
    threads.emplace_back(work);
  }
  work();
  for (std::thread& thread : threads) thread.join();
  progress.Finish();
  std::vector<LibraryFunction> functions;
  for (size_t i = 0; i < built.size(); ++i) {
    if (!built[i].ok()) {
      return Annotate(built[i].status(), TaskName(file_name, i));
    }
    functions.push_back(*std::move(built[i]));
  }
  return functions;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FunctionNames(
    const v1::SubmitJobRequest& job, const std::vector<std::string>& symbols,
    const std::string& file_name, const std::string& launcher) {
  std::vector<std::string> names;
  std::map<std::string, size_t> exporters;  // symbol to task
  for (size_t i = 0; i < symbols.size(); ++i) {
    const v1::TaskRequest& task = job.tasks(static_cast<int>(i));
    std::string wanted = symbols[i];
    if (wanted.empty()) {
      ASSIGN_OR_RETURN(const Workload workload, ParseWorkload(task.workload()));
      wanted = DerivedName(workload, task.policy());
    }
    const auto name = FunctionName(wanted);
    if (!name.ok() || *name != wanted) {
      return absl::InvalidArgumentError(absl::StrCat(
          TaskName(file_name, i), ": '", wanted,
          "' is no name of a C function that may be used here (a letter, then "
          "letters, digits and '_'; no word of C or function of the C library);"
          " give another `symbol`"));
    }
    if (!launcher.empty() && absl::StartsWith(wanted, launcher + "_")) {
      return absl::InvalidArgumentError(absl::StrCat(
          TaskName(file_name, i), ": names that begin with ", launcher,
          "_ are the launcher's own, which -o names; give another `symbol`"));
    }
    for (const std::string& symbol :
         launcher.empty() ? ExportedNames(*name) : LauncherExports(*name)) {
      const auto [place, fresh] = exporters.emplace(symbol, i);
      if (fresh) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(TaskName(file_name, i), " (", task.workload(),
                       ") and tasks[", place->second, "] would both export ",
                       symbol, "; give one of them another `symbol`"));
    }
    names.push_back(*name);
  }
  return names;
}

absl::StatusOr<Library> BuildLibrary(const LibraryRequest& request,
                                     const BestAsker& ask, bool quiet) {
  ASSIGN_OR_RETURN(
      const std::vector<std::string> names,
      FunctionNames(request.job, request.symbols, request.file_name,
                    request.launcher ? request.library : ""));
  ASSIGN_OR_RETURN(const std::vector<v1::BestRequest> questions,
                   Questions(request));
  std::vector<Planned> planned;
  for (size_t i = 0; i < questions.size(); ++i) {
    auto answer = ask(questions[i]);
    if (!answer.ok()) {
      // A class that a task names is no guess at this machine's.
      const bool guessed =
          request.target.empty() && request.device_class.empty() &&
          request.job.tasks(static_cast<int>(i)).device_classes().empty();
      return Annotate(
          guessed ? ExplainClassError(answer.status(), "") : answer.status(),
          TaskName(request.file_name, i));
    }
    planned.push_back({questions[i], *std::move(answer), names[i]});
  }
  // All ask for one class or target, of which every answer says the same.
  Library library;
  ASSIGN_OR_RETURN(library.target, ParseTarget(planned[0].answer.target()));
  ASSIGN_OR_RETURN(library.target, CompleteTarget(library.target));
  RETURN_IF_ERROR(request.check_target(library.target));
  ASSIGN_OR_RETURN(library.functions,
                   BuildAll(planned, library.target, request.file_name, quiet));
  std::vector<Module> parts;
  for (const LibraryFunction& function : library.functions) {
    parts.push_back(function.module);
  }
  ASSIGN_OR_RETURN(library.loadable, LinkParts(parts, library.target));
  return library;
}

std::vector<HeaderFunction> HeaderFunctions(const Library& library) {
  std::vector<HeaderFunction> functions;
  for (const LibraryFunction& function : library.functions) {
    functions.push_back(
        {&function.module, function.choice.grade, function.choice.reason});
  }
  return functions;
}

}  // namespace regatta::cli
