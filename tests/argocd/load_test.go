package argocd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Not parallel: it looks at every process of the plugin.
func TestADeadlineEndsInAnErrorAndLeavesNothingBehind(t *testing.T) {
	app := exampleApplication(t, "fleet", "eks")
	for file := range 1000 {
		app.write(t, fmt.Sprintf("noise/%d.yaml", file), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: noise}\n")
	}
	complete, err := app.render(t.Context(), t)
	require.NoError(t, err)

	failed := 0
	// The server keeps 100 ms for its answer. The deadlines fall into the stream, the unpacking and the plugin's own run.
	for deadline := 50 * time.Millisecond; deadline <= 500*time.Millisecond; deadline += 25 * time.Millisecond {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		rendered, err := app.render(ctx, t)
		cancel()
		if err != nil {
			failed++
			continue
		}
		assert.Equal(t, complete, rendered, "after %s", deadline)
	}
	assert.NotZero(t, failed)

	assert.Eventually(t, func() bool {
		folders, err := os.ReadDir(server.workspace)
		return err == nil && len(folders) == 0 && !running(t, server.plugin)
	}, 10*time.Second, 50*time.Millisecond, "a process or a folder is left")
}

func TestConcurrentRequestsDoNotMix(t *testing.T) {
	t.Parallel()
	for _, cluster := range exampleClusters(t) {
		expected, err := exampleApplication(t, "fleet", cluster).render(t.Context(), t)
		require.NoError(t, err)
		for request := range 20 {
			t.Run(cluster+"/"+strconv.Itoa(request), func(t *testing.T) {
				t.Parallel()
				rendered, err := exampleApplication(t, "fleet", cluster).render(t.Context(), t)
				require.NoError(t, err)
				assert.Equal(t, expected, rendered)
			})
		}
	}
}

func TestALargeRepository(t *testing.T) {
	t.Parallel()
	expected, err := exampleApplication(t, "fleet", "eks").render(t.Context(), t)
	require.NoError(t, err)

	app := exampleApplication(t, "teams/mesh", "eks")
	for file := range 5000 {
		app.write(t, fmt.Sprintf("charts/values-%d.yaml", file), "replicas: 1\n")
		app.write(t, fmt.Sprintf("../shop/main-%d.go", file), "package main\n")
	}
	rendered, err := app.render(t.Context(), t)
	require.NoError(t, err)
	assert.Equal(t, expected, rendered)
}

func running(t *testing.T, program string) bool {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	require.NoError(t, err)
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == program {
			return true
		}
	}
	return false
}
