#include "compiler/ptxsim/ptx_module.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "compiler/ptxsim/decoder.h"
#include "compiler/ptxsim/module_data.h"
#include "compiler/ptxsim/parser.h"

namespace regatta::ptxsim {
namespace {

uint32_t ThreadLimit(const Program& program) {
  uint64_t count = 0;
  for (const auto* threads : {program.max_threads, program.required_threads}) {
    if (threads[0] == 0) continue;
    count = uint64_t{threads[0]} * threads[1] * threads[2];
  }
  return static_cast<uint32_t>(std::min<uint64_t>(count, ~0u));
}

PtxModule::EntryInfo Describe(const Program& program) {
  PtxModule::EntryInfo info = {
      .name = program.name,
      .parameter_bytes = program.parameter_bytes,
      .static_shared_bytes = program.static_shared_bytes,
      .dynamic_shared = program.dynamic_shared,
      .local_bytes = program.local_bytes,
      .max_threads = ThreadLimit(program),
      .instructions = program.code.size()};
  for (const Parameter& parameter : program.parameters) {
    info.parameters.push_back({parameter.offset, parameter.bytes});
  }
  return info;
}

}  // namespace

absl::StatusOr<PtxModule> PtxModule::Parse(std::string_view text) {
  ASSIGN_OR_RETURN(const RawModule raw, ParsePtx(text));
  auto data = std::make_shared<ModuleData>();
  data->target_sm = raw.target_sm;
  data->layout = LayOutModule(raw);
  for (const RawFunction& function : raw.functions) {
    if (!function.is_entry || !function.has_body) continue;
    ASSIGN_OR_RETURN(Program program, DecodeEntry(raw, data->layout, function));
    data->entries.push_back(Describe(program));
    data->programs.push_back(std::move(program));
  }
  return PtxModule(std::move(data));
}

const std::vector<PtxModule::EntryInfo>& PtxModule::entries() const {
  return data_->entries;
}

const PtxModule::EntryInfo* PtxModule::FindEntry(std::string_view name) const {
  for (const EntryInfo& entry : data_->entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

int PtxModule::target_sm() const { return data_->target_sm; }

}  // namespace regatta::ptxsim
