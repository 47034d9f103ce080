#include "compiler/space/rules/device/matrix_copy.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/lower/intrinsics.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/device/device_nest.h"
#include "compiler/space/rules/loop_nest.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;

namespace {

constexpr int64_t kWordBytes = 4;
constexpr int64_t kLineBytes = 128;
// A piece that is turned: a square of bytes, a word in each direction.
constexpr int64_t kTurned = 4;
// Copies of a loop over single elements.
constexpr int64_t kElementUnroll = 4;

bool IsTurned(const MatrixOperand& operand) {
  return operand.TileAlongSum() && !operand.along_sum;
}

}  // namespace

CopyWay CopyWayOf(const MatrixOperand& operand, bool target_copies_async) {
  if (IsTurned(operand) ||
      operand.width * DTypeBytes(operand.dtype) < kWordBytes) {
    return CopyWay::kElements;
  }
  return target_copies_async ? CopyWay::kAsync : CopyWay::kWords;
}

int64_t CopyRegisters(const MatrixOperand& operand, CopyWay way,
                      int64_t elements, int64_t threads) {
  if (way != CopyWay::kWords) return 0;
  return CeilDiv(elements * DTypeBytes(operand.dtype), threads * kWordBytes);
}

MatrixCopy::MatrixCopy(const std::string& name, const MatrixOperand& operand,
                       const FusedIndex& sum, const MatrixTile& tile,
                       CopyWay way, LoopBuilder& out)
    : operand_(operand), sum_(sum), tile_(tile), way_(way), out_(out) {
  const int64_t bytes = DTypeBytes(operand.dtype);
  const int64_t pitch = operand.TileAlongSum() ? tile.depth : tile.across;
  local_ = out.AddBuffer({.name = absl::StrCat(name, "_tile"),
                          .dtype = operand.dtype,
                          .elements = tile.stages * tile.across * tile.depth,
                          .scope = loop::Scope::kLocal,
                          .swizzle = std::max(kLineBytes / bytes, pitch)});
  if (IsTurned(operand)) {
    const int64_t last = out.workload().indices[sum.last()].extent;
    piece_across_ = std::min(operand.width, kTurned);
    piece_summed_ = last % kTurned == 0 ? kTurned : 1;
  } else {
    (operand.along_sum ? piece_summed_ : piece_across_) =
        std::min(operand.width, operand.along_sum ? tile.depth : tile.across);
  }
  fast_ = tile.depth / piece_summed_;
  slow_ = tile.across / piece_across_;
  if (!operand.along_sum) std::swap(fast_, slow_);
  fast_threads_ = std::min(fast_, tile.threads);
  slow_threads_ = std::min(slow_, tile.threads / fast_threads_);
  if (way_ == CopyWay::kWords) {
    const int64_t pieces = fast_ / fast_threads_ * (slow_ / slow_threads_);
    words_ = out.AddBuffer({.name = absl::StrCat(name, "_words"),
                            .dtype = operand.dtype,
                            .elements = pieces * piece_across_ * piece_summed_,
                            .scope = loop::Scope::kFragment});
  }
}

int64_t MatrixCopy::PieceBytes() const {
  return piece_across_ * piece_summed_ * DTypeBytes(operand_.dtype);
}

Affine MatrixCopy::Offset(const Affine& stage, const Affine& across,
                          const Affine& summed) const {
  const Affine in_tile = operand_.TileAlongSum()
                             ? across * tile_.depth + summed
                             : summed * tile_.across + across;
  return stage * (tile_.across * tile_.depth) + in_tile;
}

Affine MatrixCopy::PieceOffset(const Piece& piece, const Affine& stage) const {
  return Offset(stage, piece.across * piece_across_,
                piece.summed * piece_summed_);
}

StmtPtr MatrixCopy::WithThread(const Affine& thread,
                               const std::function<StmtPtr()>& body) {
  thread_ = thread;
  return WithPart(out_, thread, 1, fast_threads_, [&](const Affine& fast) {
    fast_thread_ = fast;
    return WithPart(out_, thread, fast_threads_, slow_threads_,
                    [&](const Affine& slow) {
                      slow_thread_ = slow;
                      return body();
                    });
  });
}

StmtPtr MatrixCopy::ForPieces(
    const std::function<StmtPtr(const Piece&)>& body) const {
  const int64_t fast_trips = fast_ / fast_threads_;
  const int64_t slow_trips = slow_ / slow_threads_;
  const bool elements = way_ == CopyWay::kElements;
  StmtPtr pieces = MakeLoop(
      out_, slow_trips, LoopKind::kSerial,
      [&](const Affine& j) {
        return MakeLoop(
            out_, fast_trips, LoopKind::kSerial,
            [&](const Affine& i) {
              const Affine fast = fast_thread_ + i * fast_threads_;
              const Affine slow = slow_thread_ + j * slow_threads_;
              Piece piece{slow, fast, j * fast_trips + i};
              if (!operand_.along_sum) std::swap(piece.across, piece.summed);
              return body(piece);
            },
            elements ? kElementUnroll : fast_trips);
      },
      elements ? 1 : slow_trips);
  const int64_t busy = fast_threads_ * slow_threads_;
  if (busy == tile_.threads) return pieces;
  return loop::If({{thread_, busy}}, std::move(pieces));
}

StmtPtr MatrixCopy::Begin(const Affine& across, const Affine& depth,
                          const Affine& stage,
                          std::map<int, Affine> bound) const {
  return ForPieces([&](const Piece& piece) {
    const Affine row = across * (tile_.across / piece_across_) + piece.across;
    const Affine summed = depth * (tile_.depth / piece_summed_) + piece.summed;
    const std::vector<loop::Guard> exists = {
        operand_.across.Inside(row, piece_across_),
        sum_.Inside(summed, piece_summed_)};
    std::map<int, Affine> inside = bound;
    return operand_.across.Bind(out_, row, piece_across_, inside, [&] {
      return sum_.Bind(out_, summed, piece_summed_, inside, [&] {
        return BeginPiece(piece, stage, exists, inside);
      });
    });
  });
}

StmtPtr MatrixCopy::BeginPiece(const Piece& piece, const Affine& stage,
                               const std::vector<loop::Guard>& exists,
                               const std::map<int, Affine>& bound) const {
  const Affine to = PieceOffset(piece, stage);
  if (way_ == CopyWay::kElements) return CopyElements(to, exists, bound);
  const loop::ValuePtr from = Element(bound, Affine(), Affine(), exists);
  const loop::IntrinsicOperand source = {
      .buffer = from->buffer, .offset = from->offset, .guards = from->guards};
  if (way_ == CopyWay::kAsync) {
    return loop::CallIntrinsic(loop::CopyAsync(PieceBytes()),
                               {{.buffer = local_, .offset = to}, source});
  }
  const Affine word = piece.number * (piece_across_ * piece_summed_);
  return loop::CallIntrinsic(loop::LoadWords(PieceBytes()),
                             {{.buffer = words_, .offset = word}, source});
}

StmtPtr MatrixCopy::Finish(const Affine& stage) const {
  if (way_ != CopyWay::kWords) return loop::Block({});
  return ForPieces([&](const Piece& piece) {
    const Affine word = piece.number * (piece_across_ * piece_summed_);
    return loop::CallIntrinsic(
        loop::StoreWords(PieceBytes()),
        {{.buffer = local_, .offset = PieceOffset(piece, stage)},
         {.buffer = words_, .offset = word}});
  });
}

// The element so far behind the piece's first one.
loop::ValuePtr MatrixCopy::Element(
    const std::map<int, Affine>& bound, const Affine& across,
    const Affine& summed, const std::vector<loop::Guard>& exists) const {
  const auto bind = [&](int index) {
    Affine at = bound.at(index);
    if (index == operand_.across.last()) at = at + across;
    if (index == sum_.last()) at = at + summed;
    return at;
  };
  return WithGuards(out_.LoadTensor(*operand_.access, bind), exists);
}

// As vectors in the direction of memory; turned ones through registers, stored
// as vectors along the sum.
StmtPtr MatrixCopy::CopyElements(const Affine& to,
                                 const std::vector<loop::Guard>& exists,
                                 const std::map<int, Affine>& bound) const {
  const Affine none;
  if (!IsTurned(operand_)) {
    return MakeLoop(out_, piece_across_ * piece_summed_, LoopKind::kVector,
                    [&](const Affine& e) {
                      return loop::Store(
                          local_, to + e,
                          Element(bound, operand_.along_sum ? none : e,
                                  operand_.along_sum ? e : none, exists));
                    });
  }
  const int turned = out_.AddBuffer({.name = "turned",
                                     .dtype = operand_.dtype,
                                     .elements = piece_across_ * piece_summed_,
                                     .scope = loop::Scope::kRegister});
  StmtPtr load =
      MakeLoop(out_, piece_summed_, LoopKind::kUnrolled, [&](const Affine& k) {
        return MakeLoop(out_, piece_across_, LoopKind::kVector,
                        [&](const Affine& x) {
                          return loop::Store(turned, k * piece_across_ + x,
                                             Element(bound, x, k, exists));
                        });
      });
  StmtPtr store =
      MakeLoop(out_, piece_across_, LoopKind::kUnrolled, [&](const Affine& x) {
        return MakeLoop(
            out_, piece_summed_, LoopKind::kVector, [&](const Affine& k) {
              return loop::Store(local_, to + x * tile_.depth + k,
                                 loop::Load(out_.buffer(turned), turned,
                                            k * piece_across_ + x));
            });
      });
  return loop::Block({std::move(load), std::move(store)});
}

}  // namespace regatta
