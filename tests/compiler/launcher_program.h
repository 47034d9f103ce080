// Launchers as a user has them: a C compiler makes a program of NAME.c and one
// main file, which calls every function with host memory and with device
// memory.
#ifndef REGATTA_TESTS_COMPILER_LAUNCHER_PROGRAM_H_
#define REGATTA_TESTS_COMPILER_LAUNCHER_PROGRAM_H_

#include <string>
#include <vector>

#include "compiler/interp/interpreter.h"
#include "compiler/launcher/launcher.h"
#include "tests/support/process.h"

namespace regatta {

// The first schedules of `workloads` for `target`, defaults before other seeds,
// that say `choice` ("b_from=image"; "": any), as functions k0, k1, ... of a
// launcher called "k". A failure fails the test and gives no files.
std::vector<LauncherFile> LauncherOf(const std::vector<std::string>& workloads,
                                     const std::string& target,
                                     const std::string& choice = "");

// "" where there is none.
std::string FileWith(const std::vector<LauncherFile>& files,
                     const std::string& extension);

class LauncherProgram {
 public:
  // `device_code` is C that defines, over the driver of the kind of target,
  //   static void begin(void);                what there is to do first
  //   static void *caller_context(void);      third argument of k_open
  //   static void *device_new(size_t bytes, const void *from);  from: or null
  //   static void device_read(void *memory, void *to, size_t bytes);
  // and may define LAUNCH_END, the arguments of _launch after the tensors.
  // `libraries`: flags for the linker.
  LauncherProgram(const std::vector<std::string>& workloads,
                  const std::string& target, const std::string& device_code,
                  const std::string& libraries, const std::string& choice = "");

  // Runs it; exit code 10 + n: n was an unexpected code of the launcher, which
  // standard error explains.
  testing::ProcessResult Run(const testing::Environment& environment = {});
  // Whether every output of a run that ended well is right, on both ways and
  // from a second thread; failures fail the test.
  void ExpectRightResults();

 private:
  struct Case {
    Workload workload;
    std::vector<TensorValues> inputs;
  };
  void Make(const std::vector<std::string>& workloads,
            const std::string& target, const std::string& device_code,
            const std::string& libraries, const std::string& choice);
  std::string Function(size_t index);

  testing::TempDir dir_;
  std::vector<Case> cases_;
};

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_LAUNCHER_PROGRAM_H_
