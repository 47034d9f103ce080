#include "compiler/ptxsim/launch.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "compiler/ptxsim/block_runner.h"
#include "compiler/ptxsim/footprint.h"
#include "compiler/ptxsim/global_races.h"
#include "compiler/ptxsim/module_data.h"
#include "compiler/ptxsim/shared_races.h"

namespace regatta::ptxsim {
namespace {

// Of the CUDA programming guide, "Technical specifications per compute
// capability": the same since sm_30.
constexpr uint64_t kMaxThreads = 1024;
constexpr uint32_t kMaxGroupZ = 64;
constexpr uint64_t kMaxGridX = 0x7FFFFFFF;
constexpr uint32_t kMaxGridYz = 65535;
// More than any GPU gives a block.
constexpr uint64_t kMaxShared = 256 << 10;
// Registers of all warps of a block.
constexpr uint64_t kMaxFrameBytes = uint64_t{1} << 30;

absl::Status CheckShape(const Program& program, const Launch& launch) {
  const Dim3& group = launch.group;
  const Dim3& grid = launch.grid;
  if (group.Count() == 0 || group.Count() > kMaxThreads ||
      group.z > kMaxGroupZ || group.x > kMaxThreads || group.y > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block of ", group.x, "x", group.y, "x", group.z,
                     " threads: 1 to ", kMaxThreads, " are possible"));
  }
  if (grid.Count() == 0 || grid.x > kMaxGridX || grid.y > kMaxGridYz ||
      grid.z > kMaxGridYz || grid.Count() > ~uint32_t{0}) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a grid of ", grid.x, "x", grid.y, "x", grid.z, " blocks"));
  }
  const auto& most = program.max_threads;
  if (most[0] != 0 && group.Count() > uint64_t{most[0]} * most[1] * most[2]) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", program.name, " is compiled for at most ",
                     uint64_t{most[0]} * most[1] * most[2],
                     " threads a block, the launch has ", group.Count()));
  }
  const auto& exact = program.required_threads;
  if (exact[0] != 0 &&
      (group.x != exact[0] || group.y != exact[1] || group.z != exact[2])) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernel ", program.name, " is compiled for blocks of ",
                     exact[0], "x", exact[1], "x", exact[2], " threads"));
  }
  const uint64_t shared =
      uint64_t{program.static_shared_bytes} + launch.dynamic_shared_bytes;
  if (shared > kMaxShared) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel ", program.name, ": ", shared, " bytes of shared memory"));
  }
  const uint64_t warps = (group.Count() + kLanes - 1) / kLanes;
  if (warps * program.frame_bytes > kMaxFrameBytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "kernel ", program.name, ": too many registers to simulate"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> PackArguments(const Program& program,
                                                     const Launch& launch) {
  if (launch.arguments.size() != program.parameters.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "kernel ", program.name, " has ", program.parameters.size(),
        " parameters, the launch gives ", launch.arguments.size()));
  }
  std::vector<std::byte> block(program.parameter_bytes);
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const std::vector<std::byte>& bytes = launch.arguments[i].bytes();
    if (bytes.size() != program.parameters[i].bytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter ", i, " of kernel ", program.name, " has ",
          program.parameters[i].bytes, " bytes, the argument ", bytes.size()));
    }
    std::copy(bytes.begin(), bytes.end(),
              block.begin() + program.parameters[i].offset);
  }
  return block;
}

// The `index`-th of `count` numbers spread over [0, blocks), ends included.
uint64_t Spread(uint64_t index, uint64_t count, uint64_t blocks) {
  if (count <= 1) return 0;
  return static_cast<uint64_t>(static_cast<unsigned __int128>(index) *
                               (blocks - 1) / (count - 1));
}

const Program* FindProgram(const ModuleData& data, const std::string& name) {
  for (const Program& program : data.programs) {
    if (program.name == name) return &program;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<LaunchReport> RunKernel(const PtxModule& module,
                                       const Launch& launch,
                                       DeviceMemory& memory,
                                       const RunOptions& options) {
  const ModuleData& data = module.data();
  const Program* program = FindProgram(data, launch.entry);
  if (program == nullptr) {
    return absl::NotFoundError(
        absl::StrCat("the module has no kernel ", launch.entry));
  }
  RETURN_IF_ERROR(CheckShape(*program, launch));
  ASSIGN_OR_RETURN(const std::vector<std::byte> parameters,
                   PackArguments(*program, launch));
  LaunchReport report;
  report.blocks = launch.grid.Count();
  const uint64_t to_run = options.sampled_blocks == 0
                              ? report.blocks
                              : std::min(options.sampled_blocks, report.blocks);

  std::vector<std::byte> image = data.layout.image;
  std::vector<std::byte> shared(uint64_t{program->static_shared_bytes} +
                                launch.dynamic_shared_bytes);
  std::vector<std::byte> local(uint64_t{program->local_bytes} *
                               ((launch.group.Count() + 31) / 32 * 32));
  const size_t buffers = memory.buffers().size();
  Footprint footprint(buffers);
  std::optional<SharedRaces> shared_races;
  if (options.find_shared_races) {
    shared_races.emplace(shared.size(), program->shared_granule);
  }
  std::optional<GlobalRaces> global_races;
  if (options.find_global_races) {
    global_races.emplace(buffers, program->global_granule);
  }
  BlockContext block = {
      .program = program,
      .memory = &memory,
      .module_memory = absl::MakeSpan(image),
      .constant_bytes = data.layout.constant_bytes,
      .shared = absl::MakeSpan(shared),
      .local = local.data(),
      .parameters = parameters,
      .counters = &report.counters,
      .footprint = &footprint,
      .shared_races = shared_races.has_value() ? &*shared_races : nullptr,
      .global_races = global_races.has_value() ? &*global_races : nullptr,
      .group = launch.group,
  };
  BlockRunner runner(*program, launch.grid, block, options.instruction_limit);
  for (uint64_t i = 0; i < to_run; ++i) {
    const uint64_t number = Spread(i, to_run, report.blocks);
    const Dim3& grid = launch.grid;
    block.index = {static_cast<uint32_t>(number % grid.x),
                   static_cast<uint32_t>(number / grid.x % grid.y),
                   static_cast<uint32_t>(number / grid.x / grid.y)};
    ++report.blocks_run;
    if (!runner.Run(number)) {
      report.fault = block.fault;
      break;
    }
  }
  runner.Count(report.counters);
  report.counters.footprint_load_sectors = footprint.LoadSectors();
  report.counters.footprint_store_sectors = footprint.StoreSectors();
  for (size_t i = 0; i < buffers; ++i) {
    const uint64_t address = memory.buffers()[i].address;
    if (footprint.Stored(i)) report.written_buffers.push_back(address);
    if (footprint.Stored(i) || footprint.Loaded(i)) {
      report.touched_buffers.push_back(address);
    }
  }
  if (!report.fault.has_value() && to_run < report.blocks) {
    report.counters.Scale(report.blocks, to_run);
  }
  return report;
}

}  // namespace regatta::ptxsim
