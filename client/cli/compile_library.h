// `regatta compile --file`: many workloads in one library.
#ifndef REGATTA_CLIENT_CLI_COMPILE_LIBRARY_H_
#define REGATTA_CLIENT_CLI_COMPILE_LIBRARY_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/compile_choice.h"
#include "client/cli/file_question.h"
#include "compiler/module/c_interface.h"
#include "compiler/module/module.h"
#include "compiler/target/target.h"

namespace regatta::cli {

struct LibraryRequest {
  v1::SubmitJobRequest job;          // of a job document
  std::vector<std::string> symbols;  // that its tasks give; "": derived
  std::string file_name;             // for errors
  std::string device_class;          // --device-class; "": the tasks' own
  std::string target;                // --target; complete target text
  std::string library;               // C identifier: the header's name
  bool launcher = false;             // of a device, not a shared object
  // Whether the library may be for this target; asked before anything is built.
  std::function<absl::Status(const Target&)> check_target;
};

struct LibraryFunction {
  v1::BestRequest question;
  Choice choice;
  Module module;  // a part: no loadable of its own
};

struct Library {
  Target target;
  std::vector<LibraryFunction> functions;  // in the order of the tasks
  std::string loadable;
};
// For its header. The library outlives them.
std::vector<HeaderFunction> HeaderFunctions(const Library& library);

// The C functions of the tasks: `symbol`, else made of the workload and policy.
// InvalidArgument names the task of a name that C does not allow, and both
// tasks of two that would export the same symbol. `launcher`: the name of the
// launcher that they are for, whose own symbols they may not have either; "":
// none.
absl::StatusOr<std::vector<std::string>> FunctionNames(
    const v1::SubmitJobRequest& job, const std::vector<std::string>& symbols,
    const std::string& file_name, const std::string& launcher);

// Asks, chooses and builds, several tasks at a time, with progress on standard
// error unless `quiet`. The same answers and compiler give the same bytes,
// whatever the number of cores. Errors name the task; the first one counts.
absl::StatusOr<Library> BuildLibrary(const LibraryRequest& request,
                                     const BestAsker& ask, bool quiet);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_COMPILE_LIBRARY_H_
