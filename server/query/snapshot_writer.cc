#include "server/query/snapshot_writer.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/status_macros.h"
#include "server/query/best_query.h"
#include "server/query/snapshot_format.h"
#include "storage/paced_progress.h"

namespace regatta {
namespace {

namespace layout = snapshot;

constexpr uint64_t kMax = std::numeric_limits<uint32_t>::max();

// Texts end to end, each once.
class TextSection {
 public:
  layout::Text Add(const std::string& text) {
    if (text.empty()) return {};
    const auto known = places_.find(text);
    if (known != places_.end()) return known->second;
    const layout::Text place{static_cast<uint32_t>(bytes_.size()),
                             static_cast<uint32_t>(text.size())};
    overflow_ = overflow_ || bytes_.size() + text.size() > kMax;
    bytes_ += text;
    places_.emplace(text, place);
    return place;
  }
  const std::string& bytes() const { return bytes_; }
  bool overflow() const { return overflow_; }

 private:
  std::string bytes_;
  std::unordered_map<std::string, layout::Text> places_;
  bool overflow_ = false;
};

class Writer {
 public:
  explicit Writer(const SnapshotOptions& options)
      : options_(options), progress_(options.progress) {}

  absl::StatusOr<std::string> Write(const TuningLog& log) {
    bool go_on = progress_.Begin("reading best-known answers", 0);
    RETURN_IF_ERROR(CollectClasses(log));
    absl::Status status;
    RETURN_IF_ERROR(log.ForEachBest(
        [&](const WorkloadInfo& workload, const BestKnown& best) {
          status = Add(workload, best);
          progress_.Done(static_cast<int64_t>(cells_.size()));
          go_on = go_on && progress_.GoOn();
          return status.ok() && go_on;
        }));
    RETURN_IF_ERROR(status);
    if (!go_on) return absl::CancelledError("the snapshot was stopped");
    return Finish();
  }

 private:
  absl::Status CollectClasses(const TuningLog& log) {
    std::map<std::string, layout::Class> classes;
    ASSIGN_OR_RETURN(const auto logged, log.DeviceClasses(/*imported=*/true));
    for (const std::string& name : logged) classes[name];
    ASSIGN_OR_RETURN(const auto own, log.DeviceClasses(/*imported=*/false));
    for (const std::string& name : own) classes[name].flags |= layout::kOwn;
    ASSIGN_OR_RETURN(const auto facts, log.FactsOfClasses());
    for (const ClassFacts& fact : facts) {
      layout::Class& entry = classes[fact.device_class];
      entry.flags |= layout::kHasFacts;
      entry.fact_target = text_.Add(fact.target);
      entry.fact_protocol = text_.Add(fact.measure_protocol);
      targets_[fact.device_class] = fact.target;
    }
    for (const SnapshotClass& known : options_.classes) {
      layout::Class& entry = classes[known.name];
      entry.target = text_.Add(known.target);
      entry.measure_protocol = text_.Add(known.measure_protocol);
      if (known.simulated) entry.flags |= layout::kSimulated;
      entry.cores = known.cores;
      entry.flags |= layout::kOwn;
      if (!known.target.empty()) targets_[known.name] = known.target;
    }
    for (auto& [name, entry] : classes) {
      entry.name = text_.Add(name);
      class_index_[name] = static_cast<uint32_t>(classes_.size());
      classes_.push_back(entry);
    }
    return absl::OkStatus();
  }

  absl::Status Add(const WorkloadInfo& workload, const BestKnown& best) {
    if (infos_.empty() || infos_.back().key != workload.key) {
      AddWorkload(workload);
    }
    const auto device_class = class_index_.find(best.key.device_class);
    if (device_class == class_index_.end()) {
      // Its first record came after the classes were collected.
      return absl::AbortedError(absl::StrCat(
          "device class ", best.key.device_class,
          " came into the tuning log while it was read; try again"));
    }
    if (options_.max_rows > 0 && cells_.size() == options_.max_rows) {
      return absl::OutOfRangeError(absl::StrCat("the tuning log has more than ",
                                                options_.max_rows,
                                                " best-known rows"));
    }
    if (cells_.size() == kMax) {
      return absl::FailedPreconditionError(
          "the tuning log has too many best-known rows for a snapshot");
    }
    cells_.push_back(MakeCell(best, device_class->second));
    ++workloads_.back().cells;
    return absl::OkStatus();
  }

  void AddWorkload(const WorkloadInfo& workload) {
    layout::Workload entry;
    entry.key = text_.Add(workload.key);
    entry.text = text_.Add(workload.text);
    entry.family = text_.Add(workload.family);
    entry.structure = text_.Add(workload.structure);
    entry.first_extent = extents_.size();
    entry.extents = static_cast<uint32_t>(workload.extents.size());
    entry.first_cell = static_cast<uint32_t>(cells_.size());
    extents_.insert(extents_.end(), workload.extents.begin(),
                    workload.extents.end());
    // The text stands for the key only where this program reads it so: it may
    // be of a release that read it otherwise.
    parsed_ = nullptr;
    auto parsed = memo_.Parse(workload.text);
    if (parsed.ok() && (*parsed)->key == workload.key) {
      parsed_ = *std::move(parsed);
      if (parsed_->text == workload.text) {
        texts_.push_back({layout::HashText(workload.text),
                          static_cast<uint32_t>(workloads_.size())});
      }
    }
    workloads_.push_back(entry);
    infos_.push_back(workload);
  }

  layout::Cell MakeCell(const BestKnown& best, uint32_t device_class) {
    const v1::TrialResult& result = best.record.result;
    const v1::TrialSpec& spec = result.spec();
    layout::Cell cell;
    cell.workload = static_cast<uint32_t>(workloads_.size() - 1);
    cell.device_class = device_class;
    cell.threads = best.key.threads;
    cell.cache = best.key.cache;
    if (best.confirmed) cell.flags |= layout::kConfirmed;
    if (best.key.imported) cell.flags |= layout::kImported;
    if (const auto target = TakenFor(best)) {
      cell.flags |= layout::kTaken;
      if (HasSameBinary(best, target)) cell.flags |= layout::kSameBinary;
    }
    cell.kind = spec.kind();
    cell.space_version = spec.schedule().space_version();
    cell.time_ns = best.time_ns;
    cell.low_ns = best.low_ns;
    cell.high_ns = best.high_ns;
    cell.samples = best.samples;
    cell.boards = best.boards;
    cell.default_ns = best.default_ns;
    cell.speedup = best.speedup;
    cell.speedup_low = best.speedup_low;
    cell.speedup_high = best.speedup_high;
    cell.since_unix_ms = best.since_unix_ms;
    cell.recorded_unix_ms = best.record.recorded_unix_ms;
    cell.space = text_.Add(spec.schedule().space());
    cell.schedule = text_.Add(spec.schedule().text());
    cell.target = text_.Add(spec.target());
    cell.compiler_version = text_.Add(spec.compiler_version());
    cell.measure_protocol = text_.Add(result.environment().measure_protocol());
    cell.binary_hash = text_.Add(result.binary_hash());
    cell.trial_id = text_.Add(spec.trial_id());
    cell.device_id = text_.Add(result.device_id());
    cell.provenance = text_.Add(result.provenance());
    return cell;
  }

  // The class's target when this compiler takes the schedule for it. A target
  // or workload that it does not know makes that null, not an error: readers
  // then find out by themselves what is wrong.
  std::shared_ptr<const CompletedTarget> TakenFor(const BestKnown& best) {
    const auto text = targets_.find(best.key.device_class);
    if (best.key.imported || parsed_ == nullptr || text == targets_.end()) {
      return nullptr;
    }
    const auto target = memo_.Complete(text->second, options_.make_target);
    if (!target.ok() ||
        (*target)->compiler_version != options_.compiler_version) {
      return nullptr;
    }
    const auto space = memo_.SpaceOf(*parsed_, **target, best.key.threads);
    std::string field;
    const bool taken =
        space.ok() &&
        !WhyNotTaken(best.record.result.spec().schedule(), **space, &field);
    return taken ? *target : nullptr;
  }

  // Of a row that this compiler takes for `target`.
  bool HasSameBinary(const BestKnown& best,
                     const std::shared_ptr<const CompletedTarget>& target) {
    const v1::TrialResult& result = best.record.result;
    const v1::TrialSpec& spec = result.spec();
    return options_.gives_binary && !result.binary_hash().empty() &&
           spec.target() == target->text &&
           spec.compiler_version() != target->compiler_version &&
           options_.gives_binary({parsed_->text, target, best.key.threads,
                                  spec.schedule(), result.binary_hash()});
  }

  absl::StatusOr<std::string> Finish() {
    std::sort(texts_.begin(), texts_.end(),
              [](const layout::TextHash& a, const layout::TextHash& b) {
                return std::make_pair(a.hash, a.workload) <
                       std::make_pair(b.hash, b.workload);
              });
    std::vector<uint32_t> structures(workloads_.size());
    for (uint32_t i = 0; i < structures.size(); ++i) structures[i] = i;
    std::sort(structures.begin(), structures.end(),
              [&](uint32_t a, uint32_t b) {
                return std::tie(infos_[a].structure, infos_[a].key) <
                       std::tie(infos_[b].structure, infos_[b].key);
              });
    layout::Header header;
    std::memcpy(header.magic, layout::kMagic, sizeof(header.magic));
    header.space_version = kSpaceVersion;
    header.compiler_version = text_.Add(options_.compiler_version);
    if (text_.overflow()) {
      return absl::FailedPreconditionError(
          "the texts of the tuning log do not fit into a snapshot (4 GiB)");
    }
    bytes_.assign(sizeof(header), '\0');
    header.workloads = Append(workloads_);
    header.structures = Append(structures);
    header.texts = Append(texts_);
    header.cells = Append(cells_);
    header.classes = Append(classes_);
    header.extents = Append(extents_);
    header.text = {bytes_.size(), text_.bytes().size()};
    bytes_ += text_.bytes();
    header.file_bytes = bytes_.size();
    std::memcpy(bytes_.data(), &header, sizeof(header));
    const std::string digest = Sha256({bytes_});
    std::memcpy(bytes_.data() + offsetof(layout::Header, digest), digest.data(),
                digest.size());
    return std::move(bytes_);
  }

  template <typename Entry>
  layout::Table Append(const std::vector<Entry>& entries) {
    static_assert(std::is_trivially_copyable_v<Entry>);
    const layout::Table table{bytes_.size(), entries.size()};
    bytes_.append(reinterpret_cast<const char*>(entries.data()),
                  entries.size() * sizeof(Entry));
    bytes_.resize((bytes_.size() + 7) / 8 * 8, '\0');
    return table;
  }

  const SnapshotOptions& options_;
  PacedProgress progress_;
  BestMemo memo_;
  TextSection text_;
  std::vector<layout::Workload> workloads_;
  std::vector<WorkloadInfo> infos_;         // of the workloads
  std::shared_ptr<const Workload> parsed_;  // the last one; null: not as here
  std::vector<layout::TextHash> texts_;
  std::vector<layout::Cell> cells_;
  std::vector<layout::Class> classes_;
  std::vector<int64_t> extents_;
  std::map<std::string, uint32_t> class_index_;
  std::map<std::string, std::string> targets_;  // text, by class
  std::string bytes_;
};

}  // namespace

absl::StatusOr<std::string> WriteSnapshot(const TuningLog& log,
                                          const SnapshotOptions& options) {
  return Writer(options).Write(log);
}

}  // namespace regatta
