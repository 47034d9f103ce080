#include "device_agent/loop/spool_record.h"

#include <zlib.h>

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"

namespace regatta {
namespace {

// Rare in text and in small little-endian numbers.
constexpr std::string_view kMarker("\xC7\x9A\xF3\xE1", 4);

void PutU32(std::string& out, uint32_t v) {
  for (int shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<char>((v >> shift) & 0xFF));
  }
}

uint32_t GetU32(std::string_view bytes) {
  uint32_t v = 0;
  for (int i = 3; i >= 0; --i) {
    v = (v << 8) | static_cast<uint8_t>(bytes[static_cast<size_t>(i)]);
  }
  return v;
}

// Over size, type and payload; `head` is size and type as they stand.
uint32_t Checksum(std::string_view head, std::string_view payload) {
  uLong crc = crc32(0, reinterpret_cast<const Bytef*>(head.data()),
                    static_cast<uInt>(head.size()));
  crc = crc32(crc, reinterpret_cast<const Bytef*>(payload.data()),
              static_cast<uInt>(payload.size()));
  return static_cast<uint32_t>(crc);
}

// A file seen through a buffer that moves.
class Window {
 public:
  Window(SpoolStorage& storage, int64_t file_size)
      : storage_(storage), file_size_(file_size) {}

  // At least `size` bytes from `offset`, fewer only where the file ends. Valid
  // until the next call.
  absl::StatusOr<std::string_view> At(int64_t offset, int64_t size) {
    size = std::min(size, file_size_ - offset);
    if (offset < start_ || offset + size > start_ + Buffered()) {
      const int64_t piece =
          std::min(std::max(size, int64_t{1} << 20), file_size_ - offset);
      ASSIGN_OR_RETURN(buffer_, storage_.Read(offset, piece));
      start_ = offset;
    }
    return std::string_view(buffer_).substr(
        static_cast<size_t>(offset - start_));
  }

 private:
  int64_t Buffered() const { return static_cast<int64_t>(buffer_.size()); }

  SpoolStorage& storage_;
  const int64_t file_size_;
  int64_t start_ = 0;
  std::string buffer_;
};

// Offset of the next marker at or after `from`; the file's size when none.
absl::StatusOr<int64_t> FindMarker(Window& window, int64_t from,
                                   int64_t file_size) {
  while (from < file_size) {
    ASSIGN_OR_RETURN(const std::string_view view, window.At(from, 4));
    const size_t found = view.find(kMarker);
    if (found != std::string_view::npos) {
      return from + static_cast<int64_t>(found);
    }
    // The view's last bytes may begin a marker.
    from += std::max<int64_t>(1, static_cast<int64_t>(view.size()) - 3);
  }
  return file_size;
}

}  // namespace

std::string FrameSpoolRecord(SpoolRecordType type, std::string_view payload) {
  CHECK(static_cast<int64_t>(payload.size()) <= kSpoolMaxPayload)
      << payload.size();
  std::string record(kMarker);
  PutU32(record, static_cast<uint32_t>(payload.size()));
  record.push_back(static_cast<char>(type));
  PutU32(record, Checksum(std::string_view(record).substr(4, 5), payload));
  record.append(payload);
  return record;
}

std::optional<SpoolRecord> ParseSpoolRecord(std::string_view bytes) {
  if (bytes.size() < static_cast<size_t>(kSpoolRecordOverhead) ||
      bytes.substr(0, 4) != kMarker) {
    return std::nullopt;
  }
  const int64_t length = GetU32(bytes.substr(4));
  if (length > kSpoolMaxPayload ||
      kSpoolRecordOverhead + length > static_cast<int64_t>(bytes.size())) {
    return std::nullopt;
  }
  SpoolRecord record;
  record.type = static_cast<uint8_t>(bytes[8]);
  record.payload = bytes.substr(static_cast<size_t>(kSpoolRecordOverhead),
                                static_cast<size_t>(length));
  record.size = kSpoolRecordOverhead + length;
  if (Checksum(bytes.substr(4, 5), record.payload) != GetU32(bytes.substr(9))) {
    return std::nullopt;
  }
  return record;
}

absl::StatusOr<SpoolScan> ScanSpool(
    SpoolStorage& storage, int64_t start, int64_t file_size,
    const std::function<bool(const SpoolRecord&, int64_t offset)>& visit) {
  Window window(storage, file_size);
  SpoolScan scan;
  scan.end = start;
  int64_t position = start;
  while (position < file_size) {
    ASSIGN_OR_RETURN(std::string_view view,
                     window.At(position, kSpoolRecordOverhead));
    // Only a plausible length is worth reading that far for.
    if (view.size() >= 8 && view.substr(0, 4) == kMarker &&
        GetU32(view.substr(4)) <= kSpoolMaxPayload) {
      ASSIGN_OR_RETURN(view, window.At(position, kSpoolRecordOverhead +
                                                     GetU32(view.substr(4))));
    }
    const std::optional<SpoolRecord> record = ParseSpoolRecord(view);
    if (record.has_value() && visit(*record, position)) {
      if (position > scan.end) {
        ++scan.damaged;
        scan.damaged_bytes += position - scan.end;
      }
      ++scan.records;
      position += record->size;
      scan.end = position;
      continue;
    }
    ASSIGN_OR_RETURN(position, FindMarker(window, position + 1, file_size));
  }
  return scan;
}

}  // namespace regatta
