// How a group brings tiles of one operand from global to local memory.
//
// A tile is `across` rows or columns by `depth` summed elements, in rows along
// the sum or across it (MatrixOperand::TileAlongSum), swizzled. Threads copy
// pieces, neighbours in memory by neighbouring threads. Three ways:
//   asynchronously   pieces of 4 bytes and more, where the target has such
//                    copies; they land at the wait
//   through words    the same pieces without: read early, stored late, so that
//                    what is between hides their way
//   by elements      pieces that are smaller, or lie the other way round in
//                    local memory: at once
#ifndef REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_COPY_H_
#define REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_COPY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/lower/loop_builder.h"
#include "compiler/space/rules/device/matrix_tiles_shape.h"

namespace regatta {

enum class CopyWay { kAsync, kWords, kElements };

CopyWay CopyWayOf(const MatrixOperand& operand, bool target_copies_async);
// 32-bit registers of a thread that pieces on their way take.
int64_t CopyRegisters(const MatrixOperand& operand, CopyWay way,
                      int64_t elements, int64_t threads);

// The size of an operand's tiles and who copies them.
struct MatrixTile {
  int64_t across = 1, depth = 1;
  int64_t stages = 1;
  int64_t threads = 1;
};

class MatrixCopy {
 public:
  // Adds the buffers. REQUIRES: everything outlives the object.
  MatrixCopy(const std::string& name, const MatrixOperand& operand,
             const FusedIndex& sum, const MatrixTile& tile, CopyWay way,
             LoopBuilder& out);

  CopyWay way() const { return way_; }
  int buffer() const { return local_; }
  // An element of the tile in stage `stage`.
  Affine Offset(const Affine& stage, const Affine& across,
                const Affine& summed) const;

  // `body` where thread number `thread` of the group knows its pieces.
  loop::StmtPtr WithThread(const Affine& thread,
                           const std::function<loop::StmtPtr()>& body);
  // Tile number `across` of the rows or columns and `depth` of the sum, into
  // `stage`; `bound`: the indices that are in neither. Inside WithThread.
  loop::StmtPtr Begin(const Affine& across, const Affine& depth,
                      const Affine& stage, std::map<int, Affine> bound) const;
  // What Begin left to do; an empty block except for words.
  loop::StmtPtr Finish(const Affine& stage) const;

 private:
  // A piece of the tile, counted in pieces: where it lies, its number among
  // those of the thread.
  struct Piece {
    Affine across, summed, number;
  };
  loop::StmtPtr ForPieces(
      const std::function<loop::StmtPtr(const Piece&)>& body) const;
  // Copies of one piece whose indices are bound: `piece_bound`.
  loop::StmtPtr BeginPiece(const Piece& piece, const Affine& stage,
                           const std::vector<loop::Guard>& exists,
                           const std::map<int, Affine>& bound) const;
  loop::StmtPtr CopyElements(const Affine& to,
                             const std::vector<loop::Guard>& exists,
                             const std::map<int, Affine>& bound) const;
  loop::ValuePtr Element(const std::map<int, Affine>& bound,
                         const Affine& across, const Affine& summed,
                         const std::vector<loop::Guard>& exists) const;
  Affine PieceOffset(const Piece& piece, const Affine& stage) const;
  int64_t PieceBytes() const;

  const MatrixOperand& operand_;
  const FusedIndex& sum_;
  const MatrixTile tile_;
  const CopyWay way_;
  LoopBuilder& out_;
  int local_ = -1, words_ = -1;  // buffers
  // Of a piece; one of them 1, except where tiles lie the other way round.
  int64_t piece_across_ = 1, piece_summed_ = 1;
  // Pieces in the direction of memory and in the other one; threads beside each
  // other in both.
  int64_t fast_ = 1, slow_ = 1, fast_threads_ = 1, slow_threads_ = 1;
  Affine thread_, fast_thread_, slow_thread_;
};

}  // namespace regatta

#endif  // REGATTA_COMPILER_SPACE_RULES_DEVICE_MATRIX_COPY_H_
