// How parameters of tests are named, in `ctest -N` and in failures: without
// these gtest shows their bytes.
#ifndef REGATTA_TESTS_COMPILER_PRINT_PARAMS_H_
#define REGATTA_TESTS_COMPILER_PRINT_PARAMS_H_

#include <ostream>

#include "compiler/launcher/launcher.h"
#include "compiler/ops/op.h"

namespace regatta {

inline void PrintTo(const Op& op, std::ostream* out) { *out << op.name; }

inline void PrintTo(const Launcher& launcher, std::ostream* out) {
  *out << launcher.kind;
}

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_PRINT_PARAMS_H_
