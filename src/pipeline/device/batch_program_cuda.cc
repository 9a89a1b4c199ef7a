#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "backends/cuda/launch.h"
#include "core/require.h"
#include "cuda_check.h"
#include "log.h"
#include "pipeline/device/batch_program.h"
#include "shared/bits.h"

namespace fz {

namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
constexpr std::size_t kPlaceBytes = 256;  // alignment of what pools give
// Addresses that nobody has are further from each other than that.
constexpr std::uint64_t kFakeRoom = std::uint64_t{1} << 40;
// Thread blocks that wait their turn keep a device busy to the end.
constexpr unsigned kTurns = 2;
constexpr unsigned kLeastInParts = 256;

std::uint64_t wordAt(const std::uint8_t* bytes, std::size_t word) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes + word * kWordBytes, kWordBytes);
  return value;
}

std::vector<std::uint8_t> contentsOf(const PoolBlock& block) {
  std::vector<std::uint8_t> bytes(block.n_bytes);
  FZ_CUDA_CHECK(cudaMemcpy(bytes.data(), block.memory, bytes.size(), cudaMemcpyDefault));
  return bytes;
}

}  // namespace

/// Finds out what is an address.
class BatchProgram::Learner {
 public:
  Learner(const BatchRecording& one,
          const BatchAddresses& at_one,
          const BatchRecording& other,
          const BatchAddresses& at_other)
      : one_(one), other_(other), ends_one_(wordsOf(at_one)), ends_other_(wordsOf(at_other)) {}

  /// Whether the pipelines took the same memory and made the same launches.
  bool fits() const {
    const auto& blocks = one_.blocks;
    if (blocks.size() != other_.blocks.size() ||
        one_.log.launches.size() != other_.log.launches.size()) {
      return false;
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      if (blocks[i].n_bytes != other_.blocks[i].n_bytes ||
          blocks[i].is_pinned != other_.blocks[i].is_pinned) {
        return false;
      }
    }
    return true;
  }

  /// How a word moves from field to field, if it does.
  struct Meaning {
    bool is_sound = true;
    std::optional<cuda::BatchMove> move;
  };
  Meaning meaningOf(std::uint64_t word_one, std::uint64_t word_other, std::uint32_t word) {
    if (word_one == word_other) {
      return {};
    }
    for (std::uint32_t k = 0; k < ends_one_.size(); ++k) {
      if (word_one - ends_one_[k] < kFakeRoom &&
          word_other - ends_other_[k] == word_one - ends_one_[k]) {
        return {true, cuda::BatchMove{word, k + 1, word_one - ends_one_[k]}};
      }
    }
    for (std::size_t i = 0; i < one_.blocks.size(); ++i) {
      const std::uint64_t offset = word_one - begin(one_.blocks[i]);
      if (offset < one_.blocks[i].n_bytes && word_other - begin(other_.blocks[i]) == offset) {
        return {true, cuda::BatchMove{word, 0, placeOf(i) + offset}};
      }
    }
    return {false, std::nullopt};
  }

  /// Where a block of the pipeline stands in each field's memory.
  std::uint64_t placeOf(std::size_t block) {
    const auto [at, is_new] = places_.try_emplace(block, n_bytes_);
    if (is_new) {
      order_.push_back(block);
      n_bytes_ += bits::roundUp(one_.blocks[block].n_bytes, kPlaceBytes);
    }
    return at->second;
  }
  /// The place of what stands at an address of the first pipeline.
  std::optional<std::uint64_t> placeOfAddress(const void* address) {
    for (std::size_t i = 0; i < one_.blocks.size(); ++i) {
      const std::uint64_t offset = reinterpret_cast<std::uint64_t>(address) - begin(one_.blocks[i]);
      if (offset < one_.blocks[i].n_bytes) {
        return placeOf(i) + offset;
      }
    }
    return std::nullopt;
  }

  /// The memory of a field: all blocks that have a place, and those that they point to.
  void takeMemory(std::vector<std::uint64_t>& words, std::vector<cuda::BatchMove>& moves) {
    for (std::size_t n = 0; n < order_.size(); ++n) {  // grows meanwhile
      const std::size_t i = order_[n];
      const std::size_t at = places_[i] / kWordBytes;
      const std::vector<std::uint8_t> one = contentsOf(one_.blocks[i]);
      const std::vector<std::uint8_t> other = contentsOf(other_.blocks[i]);
      words.resize(at + bits::roundUp(one.size(), kPlaceBytes) / kWordBytes);
      for (std::size_t w = 0; w < one.size() / kWordBytes; ++w) {
        words[at + w] = wordAt(one.data(), w);
        // What no address explains is left of a run, after which any other may follow.
        const Meaning meaning =
            meaningOf(words[at + w], wordAt(other.data(), w), static_cast<std::uint32_t>(at + w));
        if (meaning.move) {
          moves.push_back(*meaning.move);
        }
      }
    }
  }

 private:
  static std::array<std::uint64_t, 3> wordsOf(const BatchAddresses& at) {
    return {at.input, at.output, at.input_bytes};
  }
  static std::uint64_t begin(const PoolBlock& block) {
    return reinterpret_cast<std::uint64_t>(block.memory);
  }

  const BatchRecording& one_;
  const BatchRecording& other_;
  std::array<std::uint64_t, 3> ends_one_;
  std::array<std::uint64_t, 3> ends_other_;
  std::map<std::size_t, std::uint64_t> places_;  // by block
  std::vector<std::size_t> order_;
  std::uint64_t n_bytes_ = 0;
};

std::unique_ptr<BatchProgram> BatchProgram::make(const BatchRecording& one,
                                                 const BatchAddresses& at_one,
                                                 const BatchRecording& other,
                                                 const BatchAddresses& at_other,
                                                 bool is_decoding) {
  Learner learner(one, at_one, other, at_other);
  if (!learner.fits() || one.n_records > cuda::VerdictJob::kMaxRecords) {
    FZ_LOG(INFO, "DeviceBatch: two pipelines took other memory or launched other kernels");
    return nullptr;
  }
  auto made = std::make_unique<BatchProgram>();
  made->is_decoding_ = is_decoding;
  made->output_bytes_ = one.output_bytes;
  for (std::size_t i = 0; i < one.log.launches.size(); ++i) {
    const cuda::RecordedLaunch& launch = one.log.launches[i];
    const cuda::RecordedLaunch& twin = other.log.launches[i];
    if (launch.each_field != twin.each_field || launch.n_blocks != twin.n_blocks ||
        launch.arguments.size() != twin.arguments.size()) {
      FZ_LOG(INFO, "DeviceBatch: two pipelines launched %s in other ways", launch.name);
      return nullptr;
    }
    const std::size_t at = made->argument_words_.size();
    for (std::size_t w = 0; w < launch.arguments.size() / kWordBytes; ++w) {
      const std::uint64_t word = wordAt(launch.arguments.data(), w);
      const auto meaning = learner.meaningOf(word, wordAt(twin.arguments.data(), w),
                                             static_cast<std::uint32_t>(at + w));
      if (!meaning.is_sound) {
        FZ_LOG(INFO, "DeviceBatch: word %zu of the parameters of %s differs", w, launch.name);
        return nullptr;
      }
      made->argument_words_.push_back(word);
      if (meaning.move) {
        made->argument_moves_.push_back(*meaning.move);
      }
    }
    int n_resident = 0;
    FZ_CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(
        &n_resident, launch.each_field, static_cast<int>(launch.n_threads), launch.shared_bytes));
    if (n_resident == 0) {
      FZ_LOG(INFO, "DeviceBatch: no block of %s fits a multiprocessor", launch.name);
      return nullptr;
    }
    made->launches_.push_back({launch.each_field, launch.n_blocks, launch.least_blocks,
                               launch.n_threads, launch.shared_bytes, at * kWordBytes,
                               static_cast<unsigned>(n_resident) * cuda::multiprocessorCount()});
  }
  const auto results_at = learner.placeOfAddress(one.result);
  if (!results_at) {
    FZ_LOG(INFO, "DeviceBatch: results stand in memory of nobody");
    return nullptr;
  }
  made->results_at_ = *results_at;
  learner.takeMemory(made->memory_words_, made->memory_moves_);
  made->job_.n_records = static_cast<std::uint32_t>(one.n_records);
  std::copy(one.quiet.begin(), one.quiet.end(), made->job_.quiet);
  made->job_.bound_word = static_cast<std::uint32_t>(one.bound_word);
  made->job_.is_decoding = is_decoding;
  return made;
}

namespace {

/// Both images, one after the other.
struct ImagePlaces {
  std::size_t memory_words;
  std::size_t memory_moves;
  std::size_t argument_words;
  std::size_t argument_moves;
  std::size_t n_bytes;
};

template <class T>
std::size_t addPlace(std::size_t& n_bytes, const std::vector<T>& values) {
  const std::size_t at = n_bytes;
  n_bytes += bits::roundUp(values.size() * sizeof(T), kPlaceBytes);
  return at;
}

}  // namespace

void BatchProgram::takeMemory(std::size_t n_fields, cudaStream_t stream) {
  ImagePlaces at = {};
  at.memory_words = addPlace(at.n_bytes, memory_words_);
  at.memory_moves = addPlace(at.n_bytes, memory_moves_);
  at.argument_words = addPlace(at.n_bytes, argument_words_);
  at.argument_moves = addPlace(at.n_bytes, argument_moves_);
  if (images_.reserve(at.n_bytes)) {
    const auto send = [&](std::size_t place, const auto& values) {
      if (!values.empty()) {
        FZ_CUDA_CHECK(cudaMemcpy(images_.data() + place, values.data(),
                                 values.size() * sizeof(values[0]), cudaMemcpyHostToDevice));
      }
    };
    send(at.memory_words, memory_words_);
    send(at.memory_moves, memory_moves_);
    send(at.argument_words, argument_words_);
    send(at.argument_moves, argument_moves_);
  }
  ends_.reserve(n_fields * sizeof(cuda::FieldEnds));
  pinned_ends_.reserve(n_fields * sizeof(cuda::FieldEnds), true);
  verdict_memory_.reserve(n_fields * sizeof(cuda::FieldVerdict), true);
  sample_memory_.reserve(n_fields * sizeof(cuda::FieldLook::Part), true);
  arguments_.reserve(n_fields * argument_words_.size() * kWordBytes);
  memory_.reserve(n_fields * memory_words_.size() * kWordBytes);
  const cuda::EachPlace memory{memory_.data(), memory_words_.size() * kWordBytes};
  const auto words = [&](std::size_t place) {
    return reinterpret_cast<const std::uint64_t*>(images_.data() + place);
  };
  const auto moves = [&](std::size_t place) {
    return reinterpret_cast<const cuda::BatchMove*>(images_.data() + place);
  };
  const auto* ends = reinterpret_cast<const cuda::FieldEnds*>(ends_.data());
  if (n_prepared_ < n_fields) {
    cuda::enqueueImages({words(at.memory_words), static_cast<std::uint32_t>(memory_words_.size()),
                         moves(at.memory_moves), static_cast<std::uint32_t>(memory_moves_.size())},
                        memory, memory, ends, static_cast<unsigned>(n_fields), stream);
    n_prepared_ = n_fields;
  }
  if (n_sent_ < n_fields) {
    cuda::enqueueImages(
        {words(at.argument_words), static_cast<std::uint32_t>(argument_words_.size()),
         moves(at.argument_moves), static_cast<std::uint32_t>(argument_moves_.size())},
        {arguments_.data(), argument_words_.size() * kWordBytes}, memory, ends,
        static_cast<unsigned>(n_fields), stream);
    n_sent_ = n_fields;
  }
}

/// The arguments are made anew only where the caller's memory is another one than before.
void BatchProgram::sendEnds(std::span<const cuda::FieldEnds> ends, cudaStream_t stream) {
  const bool is_new = pinned_ends_.reserve(ends.size_bytes(), true);
  const bool has_moved = ends_.reserve(ends.size_bytes());
  if (!is_new && !has_moved && n_sent_ >= ends.size() &&
      std::memcmp(pinned_ends_.data(), ends.data(), ends.size_bytes()) == 0) {
    return;
  }
  std::memcpy(pinned_ends_.data(), ends.data(), ends.size_bytes());
  FZ_CUDA_CHECK(cudaMemcpyAsync(ends_.data(), pinned_ends_.data(), ends.size_bytes(),
                                cudaMemcpyHostToDevice, stream));
  n_sent_ = 0;
}

void BatchProgram::launch(const Launch& launch, const Part& part, cudaStream_t stream) const {
  unsigned n_blocks = launch.n_blocks;
  if (launch.least_blocks > 0) {
    const unsigned wanted = kTurns * launch.blocks_at_once / part.n_all;
    n_blocks = std::min(n_blocks, std::max(wanted, launch.least_blocks));
  }
  const std::uint64_t stride = argument_words_.size() * kWordBytes;
  EachField fields{arguments_.data() + launch.arguments_at + part.first * stride, stride};
  void* parameters[] = {&fields};
  FZ_CUDA_CHECK(cudaLaunchKernel(launch.function, dim3(n_blocks, part.n), dim3(launch.n_threads),
                                 parameters, launch.shared_bytes, stream));
}

/// Many fields go in two parts, of which one goes ahead: then what ends its fields has thread
/// blocks for the processors that the other one no longer fills.
void BatchProgram::launchAll(unsigned n_fields,
                             const std::optional<Sampling>& sampling,
                             cudaStream_t stream) {
  const auto sampleOn = [&](cudaStream_t on) {
    if (sampling) {
      cuda::enqueueSamples(reinterpret_cast<const cuda::FieldEnds*>(ends_.data()), sampling->type,
                           sampling->n_bytes, samples(), n_fields, on);
    }
  };
  if (n_fields < kLeastInParts) {
    sampleOn(stream);
    for (const Launch& one : launches_) {
      launch(one, {0, n_fields, n_fields}, stream);
    }
    return;
  }
  if (side_ == nullptr) {
    int least = 0;
    int greatest = 0;
    FZ_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    FZ_CUDA_CHECK(cudaStreamCreateWithPriority(&side_, cudaStreamNonBlocking, greatest));
    FZ_CUDA_CHECK(cudaEventCreateWithFlags(&forked_, cudaEventDisableTiming));
    FZ_CUDA_CHECK(cudaEventCreateWithFlags(&joined_, cudaEventDisableTiming));
  }
  const unsigned n_ahead = n_fields / 2;
  FZ_CUDA_CHECK(cudaEventRecord(forked_, stream));
  FZ_CUDA_CHECK(cudaStreamWaitEvent(side_, forked_, 0));
  for (const Launch& one : launches_) {
    launch(one, {0, n_ahead, n_fields}, side_);
    launch(one, {n_ahead, n_fields - n_ahead, n_fields}, stream);
  }
  sampleOn(side_);
  FZ_CUDA_CHECK(cudaEventRecord(joined_, side_));
  FZ_CUDA_CHECK(cudaStreamWaitEvent(stream, joined_, 0));
}

BatchProgram::~BatchProgram() {
  if (side_ != nullptr) {
    FZ_CUDA_CHECK_WARN(cudaStreamDestroy(side_));
  }
  for (cudaEvent_t event : {forked_, joined_}) {
    if (event != nullptr) {
      FZ_CUDA_CHECK_WARN(cudaEventDestroy(event));
    }
  }
}

void BatchProgram::run(std::span<const cuda::FieldEnds> ends,
                       const std::optional<Sampling>& sampling,
                       cudaStream_t stream) {
  const auto n_fields = static_cast<unsigned>(ends.size());
  const std::size_t n_prepared = n_prepared_;
  if (n_prepared < n_fields) {  // memory may move
    n_prepared_ = 0;
    n_sent_ = 0;
  }
  try {
    sendEnds(ends, stream);
    takeMemory(n_fields, stream);
    launchAll(n_fields, sampling, stream);
    cuda::VerdictJob job = job_;
    job.results = {memory_.data() + results_at_, memory_words_.size() * kWordBytes};
    job.verdicts = verdicts();
    cuda::enqueueVerdicts(job, n_fields, stream);
    FZ_CUDA_CHECK(cudaStreamSynchronize(stream));
  } catch (...) {
    if (side_ != nullptr) {
      FZ_CUDA_CHECK_WARN(cudaStreamSynchronize(side_));
    }
    FZ_CUDA_CHECK_WARN(cudaStreamSynchronize(stream));
    n_prepared_ = 0;
    n_sent_ = 0;
    throw;
  }
}

}  // namespace fz
