#include "server/query/snapshot_check.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "regatta/v1/trial.pb.h"

namespace regatta {
namespace {

namespace layout = snapshot;

absl::Status Damaged(const std::string& what) {
  return absl::DataLossError(absl::StrCat("the snapshot is damaged: ", what));
}

template <typename Entry>
absl::StatusOr<absl::Span<const Entry>> Map(std::string_view bytes,
                                            const layout::Table& table,
                                            const char* name) {
  if (table.offset % 8 != 0 || table.offset < sizeof(layout::Header) ||
      table.offset > bytes.size() ||
      table.count > (bytes.size() - table.offset) / sizeof(Entry)) {
    return Damaged(
        absl::StrCat("table ", name, " (", table.count, " entries of ",
                     sizeof(Entry), " bytes from offset ", table.offset,
                     ") is not within the file's ", bytes.size(), " bytes"));
  }
  return absl::Span<const Entry>(
      reinterpret_cast<const Entry*>(bytes.data() + table.offset), table.count);
}

class Checker {
 public:
  explicit Checker(std::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<SnapshotTables> Check() {
    RETURN_IF_ERROR(CheckHeader());
    RETURN_IF_ERROR(MapTables());
    RETURN_IF_ERROR(CheckDigest());
    RETURN_IF_ERROR(CheckClasses());
    RETURN_IF_ERROR(CheckWorkloads());
    RETURN_IF_ERROR(CheckCells());
    RETURN_IF_ERROR(CheckIndexes());
    return tables_;
  }

 private:
  absl::Status CheckHeader() {
    layout::Header& header = tables_.header;
    if (bytes_.size() < sizeof(header.magic) ||
        std::memcmp(bytes_.data(), layout::kMagic, sizeof(header.magic)) != 0) {
      return absl::InvalidArgumentError("not a snapshot (no such beginning)");
    }
    if (bytes_.size() < sizeof(header)) {
      return absl::DataLossError(
          absl::StrCat("the snapshot is cut off: ", bytes_.size(),
                       " bytes, its header alone has ", sizeof(header)));
    }
    std::memcpy(&header, bytes_.data(), sizeof(header));
    if (header.version != layout::kSnapshotVersion) {
      return absl::FailedPreconditionError(
          absl::StrCat("the snapshot has version ", header.version,
                       ", this program reads ", layout::kSnapshotVersion,
                       "; write it again with `regatta log snapshot`"));
    }
    if (header.file_bytes > bytes_.size()) {
      return absl::DataLossError(
          absl::StrCat("the snapshot is cut off: ", bytes_.size(), " of ",
                       header.file_bytes, " bytes are there"));
    }
    if (header.file_bytes < bytes_.size()) {
      return Damaged(absl::StrCat("it has ", bytes_.size(),
                                  " bytes and should have ",
                                  header.file_bytes));
    }
    return absl::OkStatus();
  }

  absl::Status MapTables() {
    const layout::Header& header = tables_.header;
    ASSIGN_OR_RETURN(
        tables_.workloads,
        Map<layout::Workload>(bytes_, header.workloads, "workloads"));
    ASSIGN_OR_RETURN(tables_.structures,
                     Map<uint32_t>(bytes_, header.structures, "structures"));
    ASSIGN_OR_RETURN(tables_.texts,
                     Map<layout::TextHash>(bytes_, header.texts, "texts"));
    ASSIGN_OR_RETURN(tables_.cells,
                     Map<layout::Cell>(bytes_, header.cells, "cells"));
    ASSIGN_OR_RETURN(tables_.classes,
                     Map<layout::Class>(bytes_, header.classes, "classes"));
    ASSIGN_OR_RETURN(tables_.extents,
                     Map<int64_t>(bytes_, header.extents, "extents"));
    ASSIGN_OR_RETURN(const absl::Span<const char> text,
                     Map<char>(bytes_, header.text, "text"));
    tables_.text = std::string_view(text.data(), text.size());
    return absl::OkStatus();
  }

  absl::Status CheckDigest() {
    constexpr size_t kAt = offsetof(layout::Header, digest);
    constexpr char kZero[32] = {};
    const std::string digest =
        Sha256({bytes_.substr(0, kAt), std::string_view(kZero, sizeof(kZero)),
                bytes_.substr(kAt + sizeof(kZero))});
    const std::string_view stored = bytes_.substr(kAt, sizeof(kZero));
    if (digest == stored) return absl::OkStatus();
    return Damaged(absl::StrCat(
        "its content has SHA-256 ", absl::BytesToHexString(digest),
        ", its header says ", absl::BytesToHexString(ToAbsl(stored))));
  }

  // The text, when it lies within the section.
  absl::Status CheckText(layout::Text text, const char* table, size_t index) {
    if (text.length <= tables_.text.size() &&
        text.offset <= tables_.text.size() - text.length) {
      return absl::OkStatus();
    }
    return Wrong(table, index, "a text beyond the text section");
  }
  std::string_view View(layout::Text text) const {
    return tables_.text.substr(text.offset, text.length);
  }
  absl::Status Wrong(const char* table, size_t index, const char* what) {
    return Damaged(
        absl::StrCat("entry ", index, " of table ", table, " has ", what));
  }

  absl::Status CheckClasses() {
    constexpr char kName[] = "classes";
    RETURN_IF_ERROR(CheckText(tables_.header.compiler_version, "header", 0));
    for (size_t i = 0; i < tables_.classes.size(); ++i) {
      const layout::Class& entry = tables_.classes[i];
      for (const layout::Text text :
           {entry.name, entry.target, entry.measure_protocol, entry.fact_target,
            entry.fact_protocol}) {
        RETURN_IF_ERROR(CheckText(text, kName, i));
      }
      if ((entry.flags & ~uint32_t{layout::kAllClassFlags}) != 0) {
        return Wrong(kName, i, "unknown flags");
      }
      if (i > 0 && View(tables_.classes[i - 1].name) >= View(entry.name)) {
        return Wrong(kName, i, "a name out of order");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckWorkloads() {
    constexpr char kName[] = "workloads";
    for (const int64_t extent : tables_.extents) {
      if (extent <= 0) return Damaged("an extent is not positive");
    }
    uint64_t cells = 0, extents = 0;
    for (size_t i = 0; i < tables_.workloads.size(); ++i) {
      const layout::Workload& entry = tables_.workloads[i];
      for (const layout::Text text :
           {entry.key, entry.text, entry.family, entry.structure}) {
        RETURN_IF_ERROR(CheckText(text, kName, i));
      }
      if (entry.first_cell != cells || entry.first_extent != extents) {
        return Wrong(kName, i, "cells or extents that do not follow on");
      }
      cells += entry.cells;
      extents += entry.extents;
      if (cells > tables_.cells.size() || extents > tables_.extents.size()) {
        return Wrong(kName, i, "more cells or extents than there are");
      }
      if (i > 0 && View(tables_.workloads[i - 1].key) >= View(entry.key)) {
        return Wrong(kName, i, "a key out of order");
      }
    }
    if (cells != tables_.cells.size() || extents != tables_.extents.size()) {
      return Damaged("cells or extents belong to no workload");
    }
    return absl::OkStatus();
  }

  absl::Status CheckCells() {
    constexpr char kName[] = "cells";
    const auto key = [](const layout::Cell& cell) {
      return std::make_tuple(cell.workload, cell.device_class, cell.threads,
                             cell.cache, cell.flags & layout::kImported);
    };
    for (size_t i = 0; i < tables_.cells.size(); ++i) {
      const layout::Cell& cell = tables_.cells[i];
      for (const layout::Text text :
           {cell.space, cell.schedule, cell.target, cell.compiler_version,
            cell.measure_protocol, cell.binary_hash, cell.trial_id,
            cell.device_id, cell.provenance}) {
        RETURN_IF_ERROR(CheckText(text, kName, i));
      }
      if (cell.device_class >= tables_.classes.size()) {
        return Wrong(kName, i, "a class that is not there");
      }
      const bool own = cell.workload < tables_.workloads.size() &&
                       tables_.workloads[cell.workload].first_cell <= i &&
                       i - tables_.workloads[cell.workload].first_cell <
                           tables_.workloads[cell.workload].cells;
      if (!own) return Wrong(kName, i, "another workload's number");
      if ((cell.flags & ~uint32_t{layout::kAllFlags}) != 0) {
        return Wrong(kName, i, "unknown flags");
      }
      if (!v1::CacheState_IsValid(cell.cache) ||
          !v1::TrialKind_IsValid(cell.kind) || cell.threads < 1) {
        return Wrong(kName, i, "a policy or kind that does not exist");
      }
      if (i > 0 && key(tables_.cells[i - 1]) >= key(cell)) {
        return Wrong(kName, i, "a key out of order");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckIndexes() {
    const size_t workloads = tables_.workloads.size();
    if (tables_.structures.size() != workloads) {
      return Damaged("table structures has another size than workloads");
    }
    const auto structure = [&](size_t i) {
      const layout::Workload& entry = tables_.workloads[tables_.structures[i]];
      return std::make_pair(View(entry.structure), tables_.structures[i]);
    };
    for (size_t i = 0; i < tables_.structures.size(); ++i) {
      if (tables_.structures[i] >= workloads) {
        return Wrong("structures", i, "a workload that is not there");
      }
      if (i > 0 && structure(i - 1) >= structure(i)) {
        return Wrong("structures", i, "a workload out of order");
      }
    }
    for (size_t i = 0; i < tables_.texts.size(); ++i) {
      const layout::TextHash& entry = tables_.texts[i];
      if (entry.workload >= workloads) {
        return Wrong("texts", i, "a workload that is not there");
      }
      if (i > 0 && tables_.texts[i - 1].hash > entry.hash) {
        return Wrong("texts", i, "a hash out of order");
      }
    }
    return absl::OkStatus();
  }

  std::string_view bytes_;
  SnapshotTables tables_;
};

}  // namespace

absl::StatusOr<SnapshotTables> CheckSnapshot(std::string_view bytes) {
  return Checker(bytes).Check();
}

}  // namespace regatta
