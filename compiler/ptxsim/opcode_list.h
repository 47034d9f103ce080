// Every opcode that the simulator knows, except those that only the decoder can
// handle (branches, calls, returns). One list for each family, joined in
// opcode_list.cc.
#ifndef REGATTA_COMPILER_PTXSIM_OPCODE_LIST_H_
#define REGATTA_COMPILER_PTXSIM_OPCODE_LIST_H_

#include <string_view>

#include "absl/types/span.h"
#include "compiler/ptxsim/instruction_builder.h"

namespace regatta::ptxsim {

// nullptr for an unknown one.
DecodeFunction FindOpcode(std::string_view opcode);

using OpcodeSpan = absl::Span<const OpcodeEntry>;

OpcodeSpan ArithmeticOpcodes();
OpcodeSpan BitOpcodes();
OpcodeSpan DotOpcodes();
OpcodeSpan CompareOpcodes();
OpcodeSpan ConvertOpcodes();
OpcodeSpan MathOpcodes();
OpcodeSpan MoveOpcodes();
OpcodeSpan MemoryOpcodes();
OpcodeSpan AtomicOpcodes();
OpcodeSpan AsyncOpcodes();
OpcodeSpan MatrixOpcodes();
OpcodeSpan MmaOpcodes();
OpcodeSpan WarpOpcodes();
OpcodeSpan ControlOpcodes();

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_OPCODE_LIST_H_
