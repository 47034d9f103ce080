#include "compiler/ptxsim/opcode_list.h"

#include <string>
#include <unordered_map>

namespace regatta::ptxsim {

DecodeFunction FindOpcode(std::string_view opcode) {
  static const auto* const kAll = [] {
    auto* all = new std::unordered_map<std::string, DecodeFunction>();
    for (OpcodeSpan family :
         {ArithmeticOpcodes(), BitOpcodes(), DotOpcodes(), CompareOpcodes(),
          ConvertOpcodes(), MathOpcodes(), MoveOpcodes(), MemoryOpcodes(),
          AtomicOpcodes(), AsyncOpcodes(), MatrixOpcodes(), MmaOpcodes(),
          WarpOpcodes(), ControlOpcodes()}) {
      for (const OpcodeEntry& entry : family) {
        all->emplace(entry.opcode, entry.decode);
      }
    }
    return all;
  }();
  const auto found = kAll->find(std::string(opcode));
  return found == kAll->end() ? nullptr : found->second;
}

}  // namespace regatta::ptxsim
