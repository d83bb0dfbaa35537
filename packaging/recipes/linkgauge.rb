class Linkgauge < Formula
  desc "Is this network link as fast as it should be? If not, why?"
  homepage "@REPOSITORY@"
  url "@REPOSITORY@/releases/download/v@VERSION@/linkgauge-@VERSION@.tar.gz"
  version "@VERSION@"
  sha256 "@SHA256@"
  license "MIT"

  depends_on "python@3.13"

  # The sdist pins every dependency with its hash, so that the formula repeats none of them.
  def install
    system Formula["python@3.13"].opt_bin/"python3.13", "-m", "venv", libexec
    system libexec/"bin/python", "-m", "pip", "install", "--require-hashes", "-r", "locks/run.txt"
    system libexec/"bin/python", "-m", "pip", "install", "--no-deps", "--no-build-isolation", "."
    bin.install_symlink libexec/"bin/linkgauge"
    man1.install_symlink Dir[libexec/"share/man/man1/*.1"]
    bash_completion.install_symlink libexec/"share/bash-completion/completions/linkgauge"
    zsh_completion.install_symlink libexec/"share/zsh/site-functions/_linkgauge"
    fish_completion.install_symlink libexec/"share/fish/vendor_completions.d/linkgauge.fish"
  end

  test do
    assert_equal "linkgauge @VERSION@", shell_output("#{bin}/linkgauge --version").chomp
  end
end
