// Parts of a launcher's text that all kinds of devices share.
//
// What is written once for all launchers of a kind is C with '@' for the
// launcher's name (WithName); everything at file level begins with "@_", so
// that it meets no name of the caller's. What depends on the modules is a few
// tables:
//   @_buffers    bytes, whether it is written, and what image it is, by
//                function: its tensors in the order of the parameters, then its
//                workspace
//   @_arguments  places in the function's part of @_buffers
//   @_launches   kernels in the order of calls, with their geometry
//   @_functions  which part of the others belongs to which function
#ifndef REGATTA_COMPILER_LAUNCHER_LAUNCHER_TEXT_H_
#define REGATTA_COMPILER_LAUNCHER_LAUNCHER_TEXT_H_

#include <string>
#include <string_view>

#include "compiler/launcher/launcher.h"

namespace regatta {

// What the shared text says of a kind.
struct LauncherWords {
  std::string_view device;  // "NVIDIA GPUs"
  // How the caller's memory on the device is passed: null: by typed pointers;
  // else by this type ("void *"), `memory` says what it is.
  const char* memory_type = nullptr;
  std::string_view memory;  // "pointers to device memory, aligned to 64"
  // Parameters of F_launch() after the tensors: ", void *stream".
  std::string_view launch_parameters;
  std::string_view launch_arguments;  // ", stream"
  // Declarations and comments of @_open and what a caller must know.
  std::string_view interface;
};

// `text` with '@' replaced.
std::string WithName(std::string_view text, const LauncherRequest& request);

// NAME.h.
std::string LauncherHeader(const LauncherRequest& request,
                           const LauncherWords& words);
// The types and tables above.
std::string LauncherTables(const LauncherRequest& request);
// @_find(), which looks up one of the driver's functions.
std::string LauncherLookup(const LauncherRequest& request);
// F() and F_launch() of every function, by @_call and @_run.
std::string LauncherFunctions(const LauncherRequest& request,
                              const LauncherWords& words);

// A definition of `static const char *const NAME[]`: the text's lines, which a
// reader of the file can read.
std::string LinesOfText(std::string_view name, std::string_view text);
// A definition of `static const uint64_t NAME[]`: the bytes as little-endian
// words, so that they are aligned.
std::string WordsOfBytes(std::string_view name, std::string_view bytes);

}  // namespace regatta

#endif  // REGATTA_COMPILER_LAUNCHER_LAUNCHER_TEXT_H_
