// What `regatta compile` writes for devices: the code as its kind of device
// takes it, and a launcher in C99 around it. A program that compiles NAME.c and
// includes NAME.h needs nothing else of Regatta, at build time or later: the
// code is in NAME.c, and the driver's library is opened at run time.
//
//   NAME.h   declarations, with what a caller must know
//   NAME.c   the launcher
//   others   the code by itself, for people and other tools (cuda: the source
//            NAME.cu, NAME.cubin, NAME.ptx; opencl: NAME.cl)
//
// A handle (NAME_handle) is a device with the code loaded. For each function F
// there are F_launch(), which takes device memory and returns when the kernels
// are queued, and F(), which takes host memory and returns when all is done.
//
// To add a kind: a function that writes its files, here beside the others, and
// an entry in launcher_list.cc.
//
// Pure functions; thread-safe. The same arguments give the same bytes.
#ifndef REGATTA_COMPILER_LAUNCHER_LAUNCHER_H_
#define REGATTA_COMPILER_LAUNCHER_LAUNCHER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/module/c_interface.h"

namespace regatta {

struct LauncherRequest {
  std::string file;  // of all files, less their extensions: "my-k"
  std::string name;  // C identifier: "my_k"
  // Parts, as CompilePart makes them: `relocatable` is source.
  std::vector<HeaderFunction> functions;
  std::string loadable;  // of these parts, by LinkParts
};

struct LauncherFile {
  std::string extension;  // ".h"
  std::string bytes;
};

struct Launcher {
  std::string_view kind;                     // of targets: "cuda"
  absl::Span<const char* const> extensions;  // of all files, in their order
  // InvalidArgument when `loadable` is none of this kind.
  absl::StatusOr<std::vector<LauncherFile>> (*write)(
      const LauncherRequest& request);
};

// THE list, in launcher_list.cc.
absl::Span<const Launcher> Launchers();
// Null for kinds of targets that get a library instead: processors.
const Launcher* FindLauncher(std::string_view target_kind);

// Every symbol that a launcher defines for one of its functions. What it
// defines for all of them begins with its own name and '_'.
std::vector<std::string> LauncherExports(std::string_view function);

// Of a module's workspace on a device.
int64_t DeviceWorkspaceBytes(const Module& module);

}  // namespace regatta

#endif  // REGATTA_COMPILER_LAUNCHER_LAUNCHER_H_
