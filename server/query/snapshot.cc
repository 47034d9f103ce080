#include "server/query/snapshot.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "server/query/snapshot_check.h"
#include "storage/shape_distance.h"

namespace regatta {
namespace {

namespace layout = snapshot;

absl::Status SystemError(const std::string& path, int error) {
  const std::string text =
      absl::StrCat(path, ": cannot open it: ", std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) return absl::NotFoundError(text);
  if (error == EACCES) return absl::PermissionDeniedError(text);
  return absl::FailedPreconditionError(text);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Snapshot>> Snapshot::Open(
    const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return SystemError(path, errno);
  struct stat status;
  if (fstat(file.get(), &status) != 0) return SystemError(path, errno);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": not a regular file, so no snapshot"));
  }
  std::unique_ptr<Snapshot> snapshot(new Snapshot);
  if (status.st_size > 0) {
    void* mapping =
        mmap(nullptr, status.st_size, PROT_READ, MAP_SHARED, file.get(), 0);
    if (mapping == MAP_FAILED) return SystemError(path, errno);
    snapshot->mapping_ = mapping;
    snapshot->bytes_ =
        std::string_view(static_cast<const char*>(mapping), status.st_size);
  }
  return Check(std::move(snapshot), path);
}

absl::StatusOr<std::unique_ptr<Snapshot>> Snapshot::FromBytes(
    std::string bytes, const std::string& name) {
  std::unique_ptr<Snapshot> snapshot(new Snapshot);
  snapshot->owned_ = std::move(bytes);
  snapshot->bytes_ = snapshot->owned_;
  return Check(std::move(snapshot), name);
}

bool Snapshot::LooksLikeOne(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  char magic[sizeof(layout::kMagic)];
  return file.valid() &&
         pread(file.get(), magic, sizeof(magic), 0) == sizeof(magic) &&
         std::memcmp(magic, layout::kMagic, sizeof(magic)) == 0;
}

Snapshot::~Snapshot() {
  if (mapping_ != nullptr) munmap(mapping_, bytes_.size());
}

absl::StatusOr<std::unique_ptr<Snapshot>> Snapshot::Check(
    std::unique_ptr<Snapshot> snapshot, const std::string& name) {
  auto tables = CheckSnapshot(snapshot->bytes_);
  if (!tables.ok()) return Annotate(tables.status(), name);
  snapshot->header_ = tables->header;
  snapshot->workloads_ = tables->workloads;
  snapshot->structures_ = tables->structures;
  snapshot->texts_ = tables->texts;
  snapshot->cells_ = tables->cells;
  snapshot->classes_ = tables->classes;
  snapshot->extents_ = tables->extents;
  snapshot->text_ = tables->text;
  return snapshot;
}

std::string_view Snapshot::compiler_version() const {
  return View(header_.compiler_version);
}

const layout::Workload* Snapshot::FindWorkload(std::string_view key) const {
  const auto found = std::lower_bound(
      workloads_.begin(), workloads_.end(), key,
      [&](const layout::Workload& workload, std::string_view wanted) {
        return View(workload.key) < wanted;
      });
  if (found == workloads_.end() || View(found->key) != key) return nullptr;
  return &*found;
}

std::optional<uint32_t> Snapshot::ClassIndex(std::string_view name) const {
  const auto found = std::lower_bound(
      classes_.begin(), classes_.end(), name,
      [&](const layout::Class& entry, std::string_view wanted) {
        return View(entry.name) < wanted;
      });
  if (found == classes_.end() || View(found->name) != name) return std::nullopt;
  return static_cast<uint32_t>(found - classes_.begin());
}

const layout::Cell* Snapshot::FindCell(const layout::Workload& workload,
                                       uint32_t device_class,
                                       const BestKey& wanted_key) const {
  const auto cells = cells_.subspan(workload.first_cell, workload.cells);
  const auto key = [](const layout::Cell& cell) {
    return std::make_tuple(cell.device_class, cell.threads, cell.cache,
                           (cell.flags & layout::kImported) != 0);
  };
  const auto wanted = std::make_tuple(device_class, wanted_key.threads,
                                      static_cast<int32_t>(wanted_key.cache),
                                      wanted_key.imported);
  const auto found =
      std::lower_bound(cells.begin(), cells.end(), wanted,
                       [&](const layout::Cell& cell, const auto& other) {
                         return key(cell) < other;
                       });
  if (found == cells.end() || key(*found) != wanted) return nullptr;
  return &*found;
}

BestKnown Snapshot::ToBestKnown(const layout::Cell& cell) const {
  const layout::Workload& workload = workloads_[cell.workload];
  BestKnown best;
  best.key = {Copy(workload.key), Copy(classes_[cell.device_class].name),
              cell.threads, static_cast<v1::CacheState>(cell.cache),
              (cell.flags & layout::kImported) != 0};
  best.confirmed = (cell.flags & layout::kConfirmed) != 0;
  best.taken = (cell.flags & layout::kTaken) != 0;
  best.same_binary = (cell.flags & layout::kSameBinary) != 0;
  best.time_ns = cell.time_ns;
  best.low_ns = cell.low_ns;
  best.high_ns = cell.high_ns;
  best.samples = cell.samples;
  best.boards = cell.boards;
  best.default_ns = cell.default_ns;
  best.speedup = cell.speedup;
  best.speedup_low = cell.speedup_low;
  best.speedup_high = cell.speedup_high;
  best.since_unix_ms = cell.since_unix_ms;
  best.record.recorded_unix_ms = cell.recorded_unix_ms;
  best.record.family = Copy(workload.family);
  const auto extents =
      extents_.subspan(workload.first_extent, workload.extents);
  best.record.extents.assign(extents.begin(), extents.end());
  v1::TrialResult& result = best.record.result;
  v1::TrialSpec& spec = *result.mutable_spec();
  spec.set_trial_id(Copy(cell.trial_id));
  spec.set_kind(static_cast<v1::TrialKind>(cell.kind));
  spec.set_workload(Copy(workload.text));
  spec.set_workload_key(best.key.workload_key);
  spec.set_device_class(best.key.device_class);
  spec.set_target(Copy(cell.target));
  spec.mutable_policy()->set_threads(cell.threads);
  spec.mutable_policy()->set_cache(best.key.cache);
  spec.mutable_schedule()->set_space(Copy(cell.space));
  spec.mutable_schedule()->set_space_version(cell.space_version);
  spec.mutable_schedule()->set_text(Copy(cell.schedule));
  spec.set_compiler_version(Copy(cell.compiler_version));
  result.set_outcome(v1::OUTCOME_OK);
  result.set_time_ns(cell.time_ns);
  result.set_binary_hash(Copy(cell.binary_hash));
  result.mutable_environment()->set_measure_protocol(
      Copy(cell.measure_protocol));
  result.set_device_id(Copy(cell.device_id));
  result.set_device_class(best.key.device_class);
  result.set_provenance(Copy(cell.provenance));
  return best;
}

absl::StatusOr<std::optional<BestKnown>> Snapshot::Best(
    const BestKey& key) const {
  const layout::Workload* workload = FindWorkload(key.workload_key);
  const auto device_class = ClassIndex(key.device_class);
  if (workload == nullptr || !device_class) return std::optional<BestKnown>();
  const layout::Cell* cell = FindCell(*workload, *device_class, key);
  if (cell == nullptr) return std::optional<BestKnown>();
  return std::optional<BestKnown>(ToBestKnown(*cell));
}

absl::StatusOr<std::vector<BestKnown>> Snapshot::BestOfWorkload(
    std::string_view workload_key) const {
  std::vector<BestKnown> all;
  const layout::Workload* workload = FindWorkload(workload_key);
  if (workload == nullptr) return all;
  for (const layout::Cell& cell :
       cells_.subspan(workload->first_cell, workload->cells)) {
    all.push_back(ToBestKnown(cell));
  }
  return all;
}

absl::StatusOr<std::vector<BestKnown>> Snapshot::BestOfNeighbours(
    const WorkloadInfo& workload, const BestKey& key, int limit) const {
  const auto device_class = ClassIndex(key.device_class);
  if (!device_class) return std::vector<BestKnown>();
  // Distance, then index: workloads are in the order of their keys.
  std::vector<std::tuple<double, uint32_t, const layout::Cell*>> near;
  const auto first = std::lower_bound(
      structures_.begin(), structures_.end(), workload.structure,
      [&](uint32_t index, std::string_view structure) {
        return View(workloads_[index].structure) < structure;
      });
  for (auto i = first; i != structures_.end(); ++i) {
    const layout::Workload& other = workloads_[*i];
    if (View(other.structure) != workload.structure) break;
    if (View(other.key) == workload.key ||
        other.extents != workload.extents.size()) {
      continue;
    }
    const layout::Cell* cell = FindCell(other, *device_class, key);
    if (cell == nullptr) continue;
    near.emplace_back(
        ShapeDistance(workload.extents,
                      extents_.subspan(other.first_extent, other.extents)),
        *i, cell);
  }
  const size_t kept =
      std::min(near.size(), static_cast<size_t>(std::max(limit, 0)));
  std::partial_sort(near.begin(), near.begin() + kept, near.end());
  std::vector<BestKnown> all;
  for (size_t i = 0; i < kept; ++i) {
    all.push_back(ToBestKnown(*std::get<2>(near[i])));
  }
  return all;
}

absl::StatusOr<std::vector<std::string>> Snapshot::DeviceClasses(
    bool imported) const {
  std::vector<std::string> names;
  for (const layout::Class& entry : classes_) {
    if (imported || (entry.flags & layout::kOwn) != 0) {
      names.push_back(Copy(entry.name));
    }
  }
  return names;
}

absl::StatusOr<std::vector<ClassFacts>> Snapshot::FactsOfClasses() const {
  std::vector<ClassFacts> facts;
  for (const layout::Class& entry : classes_) {
    if (auto one = FindFacts(View(entry.name))) {
      facts.push_back(*std::move(one));
    }
  }
  return facts;
}

std::optional<SnapshotClass> Snapshot::FindClass(std::string_view name) const {
  const auto index = ClassIndex(name);
  if (!index) return std::nullopt;
  const layout::Class& entry = classes_[*index];
  return SnapshotClass{
      .name = Copy(entry.name),
      .target = Copy(entry.target),
      .measure_protocol = Copy(entry.measure_protocol),
      .simulated = (entry.flags & layout::kSimulated) != 0,
      .cores = entry.cores,
  };
}

std::optional<ClassFacts> Snapshot::FindFacts(std::string_view name) const {
  const auto index = ClassIndex(name);
  if (!index) return std::nullopt;
  const layout::Class& entry = classes_[*index];
  if ((entry.flags & layout::kHasFacts) == 0) return std::nullopt;
  return ClassFacts{.device_class = Copy(entry.name),
                    .target = Copy(entry.fact_target),
                    .measure_protocol = Copy(entry.fact_protocol)};
}

std::optional<KnownWorkload> Snapshot::FindText(std::string_view text) const {
  const uint64_t hash = layout::HashText(text);
  auto entry = std::lower_bound(texts_.begin(), texts_.end(), hash,
                                [](const layout::TextHash& a, uint64_t wanted) {
                                  return a.hash < wanted;
                                });
  for (; entry != texts_.end() && entry->hash == hash; ++entry) {
    const layout::Workload& workload = workloads_[entry->workload];
    if (View(workload.text) == text) {
      return KnownWorkload{Copy(workload.key), Copy(workload.text)};
    }
  }
  return std::nullopt;
}

}  // namespace regatta
