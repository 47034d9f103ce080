// The narrow float types, bit by bit, and rounding a number to an element type.
// Pure functions; thread-safe.
#ifndef REGATTA_COMPILER_MODULE_HALF_H_
#define REGATTA_COMPILER_MODULE_HALF_H_

#include <cstdint>

#include "compiler/module/dtype.h"

namespace regatta {

// Round to nearest, ties to even; too large becomes infinity; NaN stays a
// (quiet) NaN. Straight from double, so that nothing is rounded twice.
uint16_t DoubleToF16Bits(double value);
uint16_t DoubleToBF16Bits(double value);
double F16BitsToDouble(uint16_t bits);
double BF16BitsToDouble(uint16_t bits);

// `value` as an element of `type` holds it. Floats round to nearest even.
// Integers take the whole part and wrap around, as two's complement storage
// does; NaN and values beyond int64 become the nearest int64 (NaN: 0) first.
double RoundToDType(double value, DType type);

// The conversion that an expression's cast performs: as RoundToDType, but from
// a float to an integer it saturates (NaN: 0) instead of wrapping.
double CastToDType(double value, DType from, DType to);

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_HALF_H_
