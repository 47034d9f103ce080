// Whether the types of a value fit those of its operands: nothing converts but
// a cast.
#ifndef REGATTA_COMPILER_LOWER_VALUE_TYPES_H_
#define REGATTA_COMPILER_LOWER_VALUE_TYPES_H_

#include <string>

#include "compiler/lower/loop_ir.h"

namespace regatta::loop {

// "" or what is wrong, of this node alone. REQUIRES: no operand is null.
std::string TypeError(const Value& value);

}  // namespace regatta::loop

#endif  // REGATTA_COMPILER_LOWER_VALUE_TYPES_H_
