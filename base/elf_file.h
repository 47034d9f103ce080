// Whether a file of code is all there. The loader maps a file as its program
// headers say, without asking how long it is: one that was cut off, as by a
// full disk, then kills the process that loads it (SIGBUS).
#ifndef REGATTA_BASE_ELF_FILE_H_
#define REGATTA_BASE_ELF_FILE_H_

#include <string>

#include "absl/status/status.h"

namespace regatta {

// Of an ELF file of this process's width and processor: FailedPrecondition,
// naming the file, when it is shorter than what its program headers load.
// OkStatus for every other file, for the loader says itself what is wrong with
// those, and for one that is not there.
absl::Status CheckElfWhole(const std::string& path);

// FailedPrecondition, naming the file, also where it is no shared library for
// this process's processor at all, or cannot be read.
absl::Status CheckSharedLibrary(const std::string& path);

// Where the loader finds a shared library of this name without a slash: in
// $LD_LIBRARY_PATH and the folders that this program names, in its cache
// (/etc/ld.so.cache), in the system's folders, in this order. "" when it is in
// none, or the cache is of a form that is not known.
std::string FindSharedLibrary(const std::string& name);

}  // namespace regatta

#endif  // REGATTA_BASE_ELF_FILE_H_
