// A snapshot file, mapped: a source of best-known answers that never changes.
//
// Opening checks magic, version, sizes, the digest over every byte, and that no
// entry points outside its table; nothing is checked again afterwards. The file
// must not be written to meanwhile (writers make a new one and rename it).
//
// A row's record holds what answers need (schedule, target, versions, hash,
// ids, provenance), not the blocks and phases of the trial.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_SERVER_QUERY_SNAPSHOT_H_
#define REGATTA_SERVER_QUERY_SNAPSHOT_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/query/best_request.h"
#include "server/query/snapshot_format.h"
#include "server/query/snapshot_writer.h"
#include "storage/best_source.h"

namespace regatta {

class Snapshot : public BestSource {
 public:
  // Errors begin with the path. NotFound, PermissionDenied: as they say.
  // InvalidArgument: the file is no snapshot. FailedPrecondition: another
  // version of the layout, with both. DataLoss: cut off or damaged, and where.
  static absl::StatusOr<std::unique_ptr<Snapshot>> Open(
      const std::string& path);
  // Of bytes in memory, which `name` stands for in errors.
  static absl::StatusOr<std::unique_ptr<Snapshot>> FromBytes(
      std::string bytes, const std::string& name);
  // Whether the file begins as snapshots do. False when it cannot be read.
  static bool LooksLikeOne(const std::string& path);
  ~Snapshot() override;
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  absl::StatusOr<std::optional<BestKnown>> Best(
      const BestKey& key) const override;
  absl::StatusOr<std::vector<BestKnown>> BestOfWorkload(
      std::string_view workload_key) const override;
  absl::StatusOr<std::vector<BestKnown>> BestOfNeighbours(
      const WorkloadInfo& workload, const BestKey& key,
      int limit) const override;
  absl::StatusOr<std::vector<std::string>> DeviceClasses(
      bool imported) const override;
  absl::StatusOr<std::vector<ClassFacts>> FactsOfClasses() const override;

  // What the writer knew of a class, and what its rows say. Absent: neither.
  std::optional<SnapshotClass> FindClass(std::string_view name) const;
  std::optional<ClassFacts> FindFacts(std::string_view name) const;
  // The workload with this normal form. Valid only for a reader with the
  // writer's compiler_version.
  std::optional<KnownWorkload> FindText(std::string_view text) const;

  std::string_view compiler_version() const;
  size_t workloads() const { return workloads_.size(); }
  size_t rows() const { return cells_.size(); }

 private:
  Snapshot() = default;
  static absl::StatusOr<std::unique_ptr<Snapshot>> Check(
      std::unique_ptr<Snapshot> snapshot, const std::string& name);

  std::string_view View(snapshot::Text text) const {
    return text_.substr(text.offset, text.length);
  }
  std::string Copy(snapshot::Text text) const {
    return std::string(View(text));
  }
  const snapshot::Workload* FindWorkload(std::string_view key) const;
  // Of the workload; null: there is none.
  const snapshot::Cell* FindCell(const snapshot::Workload& workload,
                                 uint32_t device_class,
                                 const BestKey& key) const;
  std::optional<uint32_t> ClassIndex(std::string_view name) const;
  BestKnown ToBestKnown(const snapshot::Cell& cell) const;

  void* mapping_ = nullptr;  // null: the bytes are in `owned_`
  std::string owned_;
  std::string_view bytes_;
  snapshot::Header header_;
  absl::Span<const snapshot::Workload> workloads_;
  absl::Span<const uint32_t> structures_;
  absl::Span<const snapshot::TextHash> texts_;
  absl::Span<const snapshot::Cell> cells_;
  absl::Span<const snapshot::Class> classes_;
  absl::Span<const int64_t> extents_;
  std::string_view text_;
};

}  // namespace regatta

#endif  // REGATTA_SERVER_QUERY_SNAPSHOT_H_
