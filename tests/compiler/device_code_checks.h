// What code for every device must do, whatever runs it.
#ifndef REGATTA_TESTS_COMPILER_DEVICE_CODE_CHECKS_H_
#define REGATTA_TESTS_COMPILER_DEVICE_CODE_CHECKS_H_

#include "compiler/target/target.h"
#include "tests/compiler/device_cases.h"

namespace regatta {

// Every case of DeviceCases() gives what the loop interpreter makes of it.
void ExpectExactCases(const Target& target, const DeviceRunner& run);

// Elementary functions are good to 16 units in the last place.
void ExpectAccurateFunctions(const Target& target, const DeviceRunner& run);

// Maxima and minima of a NaN are NaN; floats become integers by saturation.
void ExpectDefinedCorners(const Target& target, const DeviceRunner& run);

// f64 becomes i32 and i8 as the interpreter has it: a NaN is 0, what is too
// large saturates. REQUIRES: the target computes in f64.
void ExpectDefinedCastsOfF64(const Target& target, const DeviceRunner& run);

// f16 and bf16 round to nearest even; ties, subnormals and overflow among what
// is tried.
void ExpectRoundingToNearestEven(const Target& target, const DeviceRunner& run);

}  // namespace regatta

#endif  // REGATTA_TESTS_COMPILER_DEVICE_CODE_CHECKS_H_
