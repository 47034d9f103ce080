// What a PtxModule holds; for the simulator only.
#ifndef REGATTA_COMPILER_PTXSIM_MODULE_DATA_H_
#define REGATTA_COMPILER_PTXSIM_MODULE_DATA_H_

#include <vector>

#include "compiler/ptxsim/decoder.h"
#include "compiler/ptxsim/program.h"
#include "compiler/ptxsim/ptx_module.h"

namespace regatta::ptxsim {

struct ModuleData {
  int target_sm = 0;
  ModuleLayout layout;
  std::vector<Program> programs;  // one for each entry, in order
  std::vector<PtxModule::EntryInfo> entries;
};

}  // namespace regatta::ptxsim

#endif  // REGATTA_COMPILER_PTXSIM_MODULE_DATA_H_
