#include "device_agent/cuda_sim/launch_memo.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "absl/hash/hash.h"

namespace regatta::cuda_sim {
namespace {

std::string_view BytesOf(const ptxsim::DeviceMemory::Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data.get()), buffer.bytes};
}

}  // namespace

void LaunchMemo::NoteWrite(uint64_t address) {
  const ptxsim::DeviceMemory::Buffer* buffer = memory_.Near(address);
  if (buffer != nullptr) writes_[buffer->address] = ++last_write_;
}

// The host writes to shared buffers unseen: there the bytes themselves say.
uint64_t LaunchMemo::Version(uint64_t address) const {
  const ptxsim::DeviceMemory::Buffer* buffer = memory_.Near(address);
  if (buffer != nullptr && buffer->shared && buffer->data != nullptr) {
    return absl::HashOf(BytesOf(*buffer));
  }
  const auto found = writes_.find(address);
  return found == writes_.end() ? 0 : found->second;
}

std::optional<int64_t> LaunchMemo::Find(const std::string& key) const {
  const auto known = known_.find(key);
  if (known == known_.end()) return std::nullopt;
  const bool same = std::all_of(
      known->second.versions.begin(), known->second.versions.end(),
      [&](const auto& entry) { return Version(entry.first) == entry.second; });
  if (!same) return std::nullopt;
  return known->second.picoseconds;
}

void LaunchMemo::Before(const std::string& key,
                        const std::vector<ptxsim::Argument>& arguments) {
  before_.clear();
  // What is launched once need not be compared.
  if (seen_.insert(key).second) return;
  for (const ptxsim::Argument& argument : arguments) {
    uint64_t address = 0;
    if (argument.bytes().size() != sizeof(address)) continue;
    std::memcpy(&address, argument.bytes().data(), sizeof(address));
    const ptxsim::DeviceMemory::Buffer* buffer = memory_.Near(address);
    if (buffer == nullptr || buffer->data == nullptr) continue;
    before_.emplace(buffer->address, BytesOf(*buffer));
  }
}

void LaunchMemo::After(const std::string& key,
                       const ptxsim::LaunchReport& report,
                       int64_t picoseconds) {
  known_.erase(key);
  bool changed = report.fault.has_value();
  for (const uint64_t address : report.written_buffers) {
    const ptxsim::DeviceMemory::Buffer* buffer = memory_.Near(address);
    const auto old = before_.find(address);
    if (old != before_.end() && old->second == BytesOf(*buffer)) continue;
    changed = true;
    NoteWrite(address);
  }
  before_.clear();
  if (changed) return;
  Known& known = known_[key];
  known.picoseconds = picoseconds;
  for (const uint64_t address : report.touched_buffers) {
    known.versions[address] = Version(address);
  }
}

void LaunchMemo::Clear() {
  seen_.clear();
  known_.clear();
}

}  // namespace regatta::cuda_sim
