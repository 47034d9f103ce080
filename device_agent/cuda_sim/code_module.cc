#include "device_agent/cuda_sim/code_module.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::cuda_sim {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int kWarp = 32;
// A warp's registers are given out in units of so many, in each of four parts
// of a processor.
constexpr int kRegisterUnit = 256;
constexpr int kParts = 4;

// The most threads of a block whose registers a processor has.
int ThreadsByRegisters(int registers, const ptxsim::GpuArchitecture& gpu) {
  const int warp = (std::max(registers, 1) * kWarp + kRegisterUnit - 1) /
                   kRegisterUnit * kRegisterUnit;
  const int warps = gpu.registers / kParts / warp * kParts;
  return std::min(kMaxThreads, warps * kWarp);
}

}  // namespace

absl::StatusOr<CodeModule> CodeModule::Create(
    std::string_view ptx, const ptxsim::Cubin* cubin,
    const ptxsim::GpuArchitecture& gpu) {
  ASSIGN_OR_RETURN(ptxsim::PtxModule parsed, ptxsim::PtxModule::Parse(ptx));
  if (parsed.target_sm() > gpu.sm) {
    return absl::InvalidArgumentError(
        absl::StrCat("PTX for sm_", parsed.target_sm(), " on an sm_", gpu.sm));
  }
  CodeModule module(std::move(parsed));
  for (const ptxsim::PtxModule::EntryInfo& entry : module.ptx_.entries()) {
    Kernel& kernel = module.kernels_[entry.name];
    kernel.entry = &entry;
    kernel.local_bytes = entry.local_bytes;
    const ptxsim::CubinKernel* facts =
        cubin == nullptr ? nullptr : cubin->Find(entry.name);
    if (facts != nullptr) {
      kernel.registers = facts->registers;
      kernel.local_bytes = facts->frame_bytes;
    }
    kernel.max_threads = ThreadsByRegisters(kernel.registers, gpu);
    if (entry.max_threads > 0) {
      kernel.max_threads =
          std::min(kernel.max_threads, static_cast<int>(entry.max_threads));
    }
    kernel.max_dynamic_shared =
        kPlainShared - std::min(kPlainShared, entry.static_shared_bytes);
  }
  return module;
}

Kernel* CodeModule::Find(const std::string& name) {
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) return nullptr;
  found->second.module = this;
  return &found->second;
}

bool LooksLikeCubin(const void* image) {
  return std::memcmp(image, ELFMAG, SELFMAG) == 0;
}

absl::StatusOr<std::string_view> CubinBytes(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64) {
    return absl::InvalidArgumentError("an ELF file of another width");
  }
  const auto* const bytes = static_cast<const char*>(image);
  uint64_t end =
      std::max(header.e_shoff + uint64_t{header.e_shentsize} * header.e_shnum,
               header.e_phoff + uint64_t{header.e_phentsize} * header.e_phnum);
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, bytes + header.e_shoff + i * header.e_shentsize,
                sizeof(section));
    if (section.sh_type == SHT_NOBITS) continue;
    end = std::max(end, section.sh_offset + section.sh_size);
  }
  return std::string_view(bytes, end);
}

}  // namespace regatta::cuda_sim
