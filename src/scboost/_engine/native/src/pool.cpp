#include "pool.h"

#ifdef _WIN32
#include <process.h>
#define getpid _getpid
#else
#include <unistd.h>
#endif

namespace scb {

Pool::Pool(int n_threads) : n_threads_(n_threads < 1 ? 1 : n_threads) {}

Pool::~Pool() {
  if (threads_.empty()) return;
  if (process_ != static_cast<long>(getpid())) {  // the child of a fork has no threads to wait for
    for (auto& thread : threads_) thread.detach();
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void Pool::start() {
  process_ = static_cast<long>(getpid());
  for (int i = 1; i < n_threads_; ++i) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (...) {  // the system allows no more threads: the work is done by fewer
      break;
    }
  }
}

void Pool::take(const std::function<void(std::size_t)>& task, std::size_t n_tasks) {
  try {
    for (std::size_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < n_tasks;) task(i);
  } catch (...) {
    next_.store(n_tasks);
    std::lock_guard<std::mutex> lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
}

void Pool::work() {
  std::size_t seen = 0;
  for (;;) {
    const std::function<void(std::size_t)>* task;
    std::size_t n_tasks;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      wake_.wait(lock, [&] { return stop_ || (generation_ != seen && task_ != nullptr); });
      if (stop_) return;
      seen = generation_;
      task = task_;
      n_tasks = n_tasks_;
      ++working_;
    }
    take(*task, n_tasks);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (--working_ == 0) done_.notify_all();
    }
  }
}

void Pool::run(std::size_t n_tasks, const std::function<void(std::size_t)>& task) {
  std::unique_lock<std::mutex> call(calls_, std::try_to_lock);
  const bool alone = !call.owns_lock() || n_threads_ < 2 || n_tasks < 2 ||
                     (!threads_.empty() && process_ != static_cast<long>(getpid()));
  if (alone) {
    for (std::size_t i = 0; i < n_tasks; ++i) task(i);
    return;
  }
  if (threads_.empty()) start();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    task_ = &task;
    n_tasks_ = n_tasks;
    next_.store(0);
    error_ = nullptr;
    ++generation_;
  }
  wake_.notify_all();
  take(task, n_tasks);
  std::exception_ptr error;
  {
    // Threads that have not begun find no task: they need not be waited for.
    std::unique_lock<std::mutex> lock(mutex_);
    task_ = nullptr;
    done_.wait(lock, [&] { return working_ == 0; });
    error = error_;
    error_ = nullptr;
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace scb
